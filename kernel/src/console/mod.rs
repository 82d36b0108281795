//! The lines to the outside: four output channels and the program's standard input.
//!
//! Output goes to debug-console ports, one byte per port write, and never blocks. Each channel is a port of its own, so that
//! the host gets the kernel's log, the program's two outputs and the final report as separate streams.

pub(crate) mod input;
mod log_channel;

use protocol::port as host;

use crate::arch::port;
use crate::sync::SpinLock;

pub(crate) use log_channel::{initialise, write_log_unlocked};

/// An output channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    /// Kernel messages.
    Log,
    /// The program's standard output.
    Output,
    /// The program's standard error.
    Error,
    /// The report at the end, as JSON.
    Report,
}

impl Channel {
    const fn port(self) -> u16 {
        match self {
            Self::Log => host::LOG,
            Self::Output => host::OUTPUT,
            Self::Error => host::ERRORS,
            Self::Report => host::REPORT,
        }
    }
}

/// Keeps two writers' bytes apart.
static WRITING: SpinLock<()> = SpinLock::new(());

/// Writes all bytes to a channel, not mixed with another task's. Not for interrupt handlers (they use `log`).
pub(crate) fn write(channel: Channel, bytes: &[u8]) {
    let _writing = WRITING.lock();
    port::write_bytes(channel.port(), bytes);
}
