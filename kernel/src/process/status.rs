//! How a process ended, and what it used while it lived.

use super::signal::Signal;
use crate::task::ProcessorTime;

/// The end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExitStatus {
    /// It called `exit` with this code.
    Exited(u8),
    /// A signal killed it.
    Killed(Signal),
    /// The same, and there is a core file of it.
    Dumped(Signal),
}

impl ExitStatus {
    /// The word that `wait4` stores.
    pub(crate) fn wait_word(self) -> u32 {
        match self {
            ExitStatus::Exited(code) => u32::from(code) << 8,
            ExitStatus::Killed(signal) => u32::from(signal.number()),
            ExitStatus::Dumped(signal) => 0x80 | u32::from(signal.number()),
        }
    }
}

/// What a thread, a process or its children used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Nanoseconds on a CPU.
    pub(crate) time: ProcessorTime,
    /// Page faults that needed no input.
    pub(crate) minor_faults: u64,
    /// Most pages resident at once.
    pub(crate) peak_pages: u64,
}

impl Usage {
    /// Adds what another used.
    pub(crate) fn add(&mut self, other: &Usage) {
        self.time.user += other.time.user;
        self.time.system += other.time.system;
        self.minor_faults += other.minor_faults;
        self.peak_pages = self.peak_pages.max(other.peak_pages);
    }
}
