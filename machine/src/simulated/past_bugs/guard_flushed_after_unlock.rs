//! Guarding a page against stores changed the entry, let others at it, and flushed at the end. Whoever looked at the entry meanwhile
//! found it unwritable, and relied on it. A third CPU stored through its stale entry afterwards.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::GUARD_TWICE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-flushed-after-unlock",
    source: "coherence.md 5.6; Linux 6ce64428d620",
    story: "Guarding a page against stores changed the entry, let others at it, and flushed at the end. Whoever looked at the \
            entry meanwhile found it unwritable, and relied on it. A third CPU stored through its \
            stale entry afterwards.",
    mistake: Mistake::Memory(memory::Mistake::GuardFlushedAfterUnlock),
    scenario: &GUARD_TWICE_AND_WRITER,
    breaks: "D3",
};
