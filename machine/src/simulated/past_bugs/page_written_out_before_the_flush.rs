//! The entry of a dirty page was changed, and the page was copied to a device before the flush. CPUs that had the entry as dirty
//! stored on, which left no mark anywhere. What they stored after the copy was lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::CLEAN_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "page-written-out-before-the-flush",
    source: "coherence.md 7 row 25: Linux 60bae7370896; row 2 in part",
    story: "The entry of a dirty page was changed, and the page was copied to a device before the flush. CPUs \
            that had the entry as dirty stored on, which left no mark anywhere. What they stored after the copy \
            was lost.",
    mistake: Mistake::Coherence(coherence::Fault::WrittenBatchNotFlushed),
    scenario: &CLEAN_AND_WRITER,
    breaks: "D2",
};
