//! What the explorer asks of the simulated hardware.

use crate::{Digest, Step};

/// A store that becomes visible to all CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// Whose.
    pub cpu: usize,
    /// Where: the host's address.
    pub address: usize,
    /// What the hardware was told with the store; 0 for the kernel's own.
    pub note: u64,
}

/// What the code under check says of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration {
    /// A frame got an owner.
    Given(u64),
    /// A frame lost its last owner.
    Taken(u64),
    /// A page of this frame was copied: from here on the copy counts.
    Copied(u64),
    /// A page of this frame was written out: what it holds now counts as all that was stored to it.
    Written(u64),
}

/// The hardware around the CPUs: what it does by itself, what an interrupt does, and what it knows.
///
/// All methods are called with no CPU in the middle of a step, so none of them may make a step, except `interrupt` and
/// `unmaskable`, which run on a CPU.
pub trait Hardware {
    /// Lists what the hardware may do by itself now, where that could matter for `next`, the step that the running CPU makes next.
    fn events(&self, next: &Step, events: &mut Vec<u64>);

    /// Lists what the hardware is going to do, sooner or later. When no CPU can go on, it does one of these next; earlier it is a
    /// deviation like those of `events`.
    fn due(&self, events: &mut Vec<u64>) {
        let _ = events;
    }

    /// Does one of either list.
    fn perform(&self, event: u64);

    /// What an interrupt does on the CPU that takes it. Interrupts are masked meanwhile.
    fn interrupt(&self);

    /// What an interrupt does that cannot be masked. It may come between any two steps; see [`crate::unmaskable`].
    fn unmaskable(&self) {}

    /// All that the hardware knows and that its later behaviour depends on.
    fn state(&self) -> Digest;

    /// A store has become visible.
    fn stored(&self, store: &Store);

    /// The code under check declares something.
    fn declared(&self, declaration: Declaration);

    /// What a reader of a schedule wants beside each line: the caches, say.
    fn picture(&self) -> String;
}
