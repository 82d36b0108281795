//! When a thread with restartable sequences must be told something on its way back to user mode: `process::sequence` tells it.
//!
//! A task that leaves its CPU out of an interrupt or exception may be inside a sequence, which must not survive. One that leaves out of a system
//! call is not, and needs to be told only if it comes to another CPU.

use core::sync::atomic::{AtomicU32, Ordering};

use super::{Task, Work};
use crate::cpu;

/// Nothing is registered.
const UNWATCHED: u32 = u32::MAX;
/// No CPU's number has been told yet.
const UNTOLD: u32 = u32::MAX - 1;

/// The CPU whose number the program was told last. Written by the task itself and, before it starts, by its maker.
pub(super) struct SequenceWatch(AtomicU32);

impl SequenceWatch {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(UNWATCHED))
    }

    fn told(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&told| told != UNWATCHED)
    }
}

impl Task {
    /// Begins or ends to watch the running task, or one that has not started.
    pub(crate) fn watch_sequence(&self, watch: bool) {
        self.sequence.0.store(if watch { UNTOLD } else { UNWATCHED }, Ordering::Relaxed);
        self.restart_sequence();
    }

    /// Lets no sequence that the task may be in survive. The task is the running one, or has not started; may be called in an
    /// interrupt handler.
    pub(crate) fn restart_sequence(&self) {
        if self.sequence.told().is_some() {
            self.work.fetch_or(Work::SEQUENCE.bits(), Ordering::SeqCst);
        }
    }

    /// Takes the work on; the running task is about to do it.
    pub(crate) fn clear_sequence(&self) {
        self.work.fetch_and(!Work::SEQUENCE.bits(), Ordering::SeqCst);
    }

    /// Notes which CPU's number the running task is told. Before it is: a task that moves in between is told again.
    pub(crate) fn note_sequence_cpu(&self, cpu: u32) {
        self.sequence.0.store(cpu, Ordering::Relaxed);
    }

    /// The task leaves its CPU.
    pub(super) fn leave_sequence(&self) {
        if self.sequence.told().is_some() && !self.stack.is_in_system_call() {
            self.restart_sequence();
        }
    }

    /// The task has come to a CPU.
    pub(super) fn arrive_in_sequence(&self) {
        if self.sequence.told().is_some_and(|told| told != cpu::index() as u32) {
            self.restart_sequence();
        }
    }
}
