//! A bug that a kernel once had, built into the code under check at one place, and the scenario that shows it.

use super::scenario::Scenario;

/// Where the code is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// In `coherence`.
    Coherence(coherence::Fault),
    /// In `memory`.
    Memory(memory::Mistake),
    /// In what a kernel around them owes them, which the machine plays.
    Kernel(KernelMistake),
    /// Below both: the machine, or whoever implements `Platform` for it, breaks a promise.
    Hardware(HardwareMistake),
}

/// What a machine can do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareMistake {
    /// A remote invalidation counts as done although stores made through what it dropped still wait in a buffer.
    CompletesBeforeStores,
    /// The hypervisor drops nothing on a CPU that has another space loaded at that moment.
    AsksWhatIsLoaded,
    /// The hypervisor looks whether a CPU is to be flushed, and clears the word afterwards.
    LooksBeforeItClears,
    /// The hypervisor marks a CPU as descheduled before it has stopped.
    MarksBeforeItStops,
    /// Of an entry that it marks dirty, a processor does not look again whether it allows the store.
    MarksDirtyBlindly,
}

/// A way in which a kernel fails `coherence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelMistake {
    /// A thread may be moved to another CPU in the middle of a call that must stay on one.
    CallsMove,
}

impl Mistake {
    /// Makes it in what is run from here on, on this thread.
    pub(super) fn fault(self) -> Option<coherence::Fault> {
        match self {
            Mistake::Coherence(fault) => Some(fault),
            Mistake::Memory(_) | Mistake::Kernel(_) | Mistake::Hardware(_) => None,
        }
    }

    /// Makes it in the kernel that the machine plays.
    pub(super) fn of_kernel(self) -> Option<KernelMistake> {
        match self {
            Mistake::Kernel(mistake) => Some(mistake),
            _ => None,
        }
    }

    /// The one of the machine itself.
    pub(super) fn of_the_hardware(self) -> Option<HardwareMistake> {
        match self {
            Mistake::Hardware(mistake) => Some(mistake),
            _ => None,
        }
    }
}

/// A past bug.
pub struct PastBug {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Whose bug it was: rows of `coherence.md`, commits.
    pub source: &'static str,
    /// What happened, in about three sentences.
    pub story: &'static str,
    /// The one place that is wrong.
    pub mistake: Mistake,
    /// Where it shows.
    pub scenario: &'static Scenario,
    /// The promise that the finding names.
    pub breaks: &'static str,
}
