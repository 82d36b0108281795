//! The part of a process's signal handling that all its threads share.

use super::super::{ExitStatus, Process, Thread};
use super::action::Disposition;
use super::pending::Pending;
use super::set::{DefaultAction, Signal, SignalSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Under the lock of a process's signals.
pub(in super::super) struct SignalState {
    /// Sent to the process as a whole.
    pub(in super::super) pending: Pending,
    /// Its living threads. A thread leaves the list as the first step of its end that others can see.
    pub(in super::super) threads: Vec<Arc<Thread>>,
    /// The process is ending: every thread is to end, and this is what its parent will see.
    pub(in super::super) ending: Option<ExitStatus>,
    /// This thread is in `execve`: every other is to end.
    pub(in super::super) executing: Option<u32>,
    /// The process is stopped or stopping by this signal: every thread is to wait until it is continued.
    pub(in super::super) stop: Option<Signal>,
    /// A stop signal was taken from a queue and nothing has overruled it yet.
    pub(in super::super) stop_taken: bool,
    /// The parent was told of this stop.
    pub(in super::super) stop_reported: bool,
    /// How many threads wait to be continued.
    pub(in super::super) waiting: usize,
    /// It was continued from a stop that was reported; the first thread to run again tells the parent.
    pub(in super::super) continued: bool,
}

impl SignalState {
    pub(in super::super) fn new() -> SignalState {
        SignalState {
            pending: Pending::new(),
            threads: Vec::new(),
            ending: None,
            executing: None,
            stop: None,
            stop_taken: false,
            stop_reported: false,
            waiting: 0,
            continued: false,
        }
    }

    /// Whether `thread` has anything to do before it may run user code.
    pub(in super::super) fn concerns(&self, thread: &Thread) -> bool {
        self.ending.is_some()
            || self.stop.is_some()
            || self.continued
            || self.executing.is_some_and(|id| id != thread.id())
            || !self.deliverable(thread).is_empty()
    }

    /// Whether one of the signals that `thread` could take now ends the process.
    pub(in super::super) fn has_deadly(&self, thread: &Thread) -> bool {
        let mut left = self.deliverable(thread);
        while let Some(signal) = left.next() {
            left.remove(signal);
            let is_default = thread.process().action(signal).disposition == Disposition::Default;
            let deadly = matches!(signal.default_action(), DefaultAction::Terminate | DefaultAction::Core);
            if is_default && deadly {
                return true;
            }
        }
        false
    }

    /// Signals that `thread` could take now.
    pub(in super::super) fn deliverable(&self, thread: &Thread) -> SignalSet {
        (thread.pending.lock().set() | self.pending.set()) & !thread.blocked()
    }

    /// Drops instances of `signals` that wait anywhere in the process.
    pub(in super::super) fn discard(&mut self, signals: SignalSet) {
        self.pending.discard(signals);
        for thread in &self.threads {
            thread.pending.lock().discard(signals);
        }
    }

    /// Makes the threads come to the edge of user mode and look at this state.
    pub(in super::super) fn notify_all(&self) {
        for thread in &self.threads {
            notify(thread);
        }
    }

    /// Starts the end of `process`, whose state this is, unless it is ending already; returns what it ends
    /// with.
    pub(in super::super) fn begin_end(&mut self, process: &Process, status: ExitStatus) -> ExitStatus {
        let status = *self.ending.get_or_insert(status);
        self.notify_all();
        process.changes.wake_all();
        status
    }
}

/// Marks a thread as interrupted and makes it notice. The caller holds the lock of its process's signals and
/// found it in the list of threads, so its task lives.
pub(in super::super) fn notify(thread: &Thread) {
    if let Some(task) = thread.task() {
        task.interrupt();
    }
}
