//! Calls that promise something to the program that makes them.

use memory::PageRange;

/// Which call: the CPU and its how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OperationId {
    pub(super) cpu: usize,
    pub(super) count: u64,
}

impl OperationId {
    pub(super) fn number(self) -> u64 {
        self.count << 8 | self.cpu as u64
    }
}

/// What is promised when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// What was mapped when it was called is not any more.
    Removal,
    /// What could be written when it was called cannot be any more.
    Protection,
    /// What is cached agrees with the tables: a page fault, or more rights.
    Agreement,
}

/// A call in progress.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) id: OperationId,
    pub(super) name: &'static str,
    pub(super) root: u64,
    pub(super) range: PageRange,
    pub(super) promise: Promise,
}
