//! Our own, in November 2026, found by random histories that draw the mechanisms. Without lazy CPUs, who comes back to a space that it
//! borrowed compared nothing, since every flush had reached it. A batch's round had left it alone, as one that runs no user code.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::RECLAIM_AND_COMING_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "borrower-misses-a-batch",
    source: "ceasefire e7b1412 (2026)",
    story: "Without lazy CPUs, who comes back to a space that it borrowed compared nothing, since every \
            flush had reached it. A batch's round had left it alone, as one that runs no user code. It \
            read a page that had been taken back, and had another owner.",
    mistake: Mistake::Coherence(coherence::Fault::BorrowerMissesBatches),
    scenario: &RECLAIM_AND_COMING_BACK,
    breaks: "D1",
};
