//! Reclaim emptied entries in a batch, whose flush was to come at its end. munmap, mprotect or madvise found them empty, had nothing
//! to flush, and returned. The program went on using what it had just been told was gone.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::RECLAIM_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "pending-batch-not-settled",
    source: "coherence.md 7 row 3: Linux 3ea277194daa",
    story: "Reclaim emptied entries in a batch, whose flush was to come at its end. munmap, mprotect or madvise \
            found them empty, had nothing to flush, and returned. The program went on using what it had just \
            been told was gone.",
    mistake: Mistake::Coherence(coherence::Fault::BatchNotSettled),
    scenario: &RECLAIM_AND_MUNMAP,
    breaks: "D3",
};
