//! The kernel's own messages: `log`'s macros, one line each, on the log channel.

use core::fmt::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

use super::Channel;
use crate::arch::port;
use crate::sync::InterruptLock;

struct Raw;

impl fmt::Write for Raw {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        port::write_bytes(Channel::Log.port(), text.as_bytes());
        Ok(())
    }
}

struct Logger(InterruptLock<()>);

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let _line = self.0.lock();
        let now = crate::time::now();
        let (seconds, micros) = (now / 1_000_000_000, now / 1000 % 1_000_000);
        // The debug console cannot fail.
        let _ = writeln!(Raw, "[{seconds:4}.{micros:06}] {}", record.args());
    }

    fn flush(&self) {}
}

static LOGGER: Logger = Logger(InterruptLock::new(()));

/// Makes `log`'s macros work.
pub(crate) fn initialise() {
    log::set_logger(&LOGGER).expect("the logger is set once");
    log::set_max_level(LevelFilter::Info);
}

/// Writes to the log without its lock, for a kernel that is dying: another CPU may hold it for ever.
pub(crate) fn write_log_unlocked(message: fmt::Arguments<'_>) {
    let _ = Raw.write_fmt(message);
}
