//! An entry without the mark of being used was taken for one that no CPU has, and taken out without a flush.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::reclaim::AGED_AND_TAKEN_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "unused-taken-for-uncached",
    source: "coherence.md 6.5-B and 5.2: either may be adopted, but not both",
    story: "Hardware marks an entry as used before it caches it, so one that is not marked is in no CPU, and the frame was freed without a flush. \
        But who looked which pages are used had taken the mark without one.",
    mistake: Mistake::Memory(memory::Mistake::UnusedTakenForUncached),
    scenario: &AGED_AND_TAKEN_BACK,
    breaks: "D1",
};
