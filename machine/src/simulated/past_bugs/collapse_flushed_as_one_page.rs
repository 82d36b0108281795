//! The place where small pages became a large one was flushed as a large page, by one invalidation at its beginning. The
//! translations of all small pages but the first stayed, and their frames were freed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::COLLAPSE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "collapse-flushed-as-one-page",
    source: "our own: one invalidation for what is one page afterwards",
    story: "The place where small pages became a large one was flushed as a large page, by one invalidation at \
            its beginning. The translations of all small pages but the first stayed, and their frames were \
            freed.",
    mistake: Mistake::Memory(memory::Mistake::CollapseFlushedAsOnePage),
    scenario: &COLLAPSE_AND_WRITER,
    breaks: "D4",
};
