//! A range was taken from its monitor while a thread waited for a page in it. Nobody would fill that page in any more, and nobody
//! told the thread.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::FAULT_AND_UNWATCH;

pub(super) const BUG: PastBug = PastBug {
    name: "unwatched-without-waking",
    source: "the end of a registration; userfaultfd(2)",
    story: "A range was taken from its monitor while a thread waited for a page in it. Nobody would fill that page in any more, \
            and nobody told the thread.",
    mistake: Mistake::Memory(memory::Mistake::UnwatchedWithoutWaking),
    scenario: &FAULT_AND_UNWATCH,
    breaks: "nobody can go on",
};
