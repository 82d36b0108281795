//! The program's standard input, output and error as files.
//!
//! They are lines to the host, not terminals: there is no echo, no line editing, no window. A write of any
//! size comes out in one piece.

use super::file::{File, Patience};
use super::readiness::{Observers, Readiness};
use super::transfer::{Destination, Source, buffer_for, collect};
use super::waiting;
use crate::console::{self, Channel, input};
use crate::sync::Mutex;
use crate::syscall::Errno;

/// Keeps writes apart that are longer than one piece.
static WRITING: Mutex<()> = Mutex::new(());
static INPUT_OBSERVERS: Observers = Observers::new();
/// For openings without input: a list on which nothing is ever announced, since output never has to wait.
static OUTPUT_OBSERVERS: Observers = Observers::new();

/// Called by the receiver's interrupt when input has arrived.
pub(crate) fn input_arrived() {
    INPUT_OBSERVERS.announce(Readiness::READABLE);
}

/// A line to the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Input,
    Output,
    Error,
}

pub(crate) struct ConsoleFile {
    input: bool,
    output: Option<Channel>,
}

impl ConsoleFile {
    pub(crate) fn line(line: Line) -> Self {
        match line {
            Line::Input => Self { input: true, output: None },
            Line::Output => Self { input: false, output: Some(Channel::Output) },
            Line::Error => Self { input: false, output: Some(Channel::Error) },
        }
    }

    /// What `/dev/console` and `/dev/tty` open: both directions.
    pub(crate) fn terminal() -> Self {
        Self { input: true, output: Some(Channel::Output) }
    }
}

impl File for ConsoleFile {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if !self.input {
            return Err(Errno::EBADF);
        }
        if to.remaining() == 0 {
            return Ok(0);
        }
        let mut buffer = buffer_for(to.remaining().min(4096));
        let count = waiting::attempt(&input::ARRIVED, patience, || input::try_read(&mut buffer))?;
        if count == 0 { Ok(0) } else { to.put(&buffer[..count]) }
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        let channel = self.output.ok_or(Errno::EBADF)?;
        let _writing = WRITING.lock();
        collect(from, |_, bytes| {
            console::write(channel, bytes);
            Ok(bytes.len())
        })
    }

    fn readiness(&self) -> Readiness {
        let mut readiness = Readiness::empty();
        if self.input && input::is_ready() {
            readiness |= Readiness::READABLE;
        }
        if self.output.is_some() {
            readiness |= Readiness::WRITABLE;
        }
        readiness
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(if self.input { &INPUT_OBSERVERS } else { &OUTPUT_OBSERVERS }), None]
    }
}
