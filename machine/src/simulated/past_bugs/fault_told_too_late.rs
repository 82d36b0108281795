//! A thread found a page missing, and went to tell its monitor. The monitor filled the page in before, and found nobody to wake. The
//! thread did not look again before it slept.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::FAULT_AND_FILL;

pub(super) const BUG: PastBug = PastBug {
    name: "fault-told-too-late",
    source: "the wait of a userfault; coherence.md 5.6",
    story: "A thread found a page missing, and went to tell its monitor. The monitor filled the page in before, and found nobody \
            to wake. The thread did not look again before it slept.",
    mistake: Mistake::Memory(memory::Mistake::ToldWithoutLookingAgain),
    scenario: &FAULT_AND_FILL,
    breaks: "nobody can go on",
};
