//! An entry was believed to be unused although whoever had made it so had not flushed yet.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::gathers::SHARED_AND_REPLACED;

pub(super) const BUG: PastBug = PastBug {
    name: "unused-before-its-flush",
    source: "performance.md 3.1, B2; the nested rule of gather.rs",
    story: "An operation made a page's entry unused, released the table's lock, and was about to flush. A page fault found the entry unused, put a copy \
        in its place, flushed nothing and freed the frame, which a CPU could still write to.",
    mistake: Mistake::Coherence(coherence::Fault::UnusedBeforeItsFlush),
    scenario: &SHARED_AND_REPLACED,
    breaks: "D1",
};
