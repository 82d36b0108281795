//! Taking a guard away set the right to write as the area has it. The page had been shared with a child since: the parent's store went into
//! the child's memory as well.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::UNGUARD_AND_CHILD;

pub(super) const BUG: PastBug = PastBug {
    name: "unguarded-and-still-shared",
    source: "coherence.md 5.6: write-protection and fork",
    story: "Taking a guard away set the right to write as the area has it. The page had been shared with a child since: the \
            parent's store went into the child's memory as well.",
    mistake: Mistake::Memory(memory::Mistake::UnguardedWithoutAskingWhoOwns),
    scenario: &UNGUARD_AND_CHILD,
    breaks: "D3",
};
