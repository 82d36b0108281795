//! That a batch was pending in an address space was a flag. An operation saw it, flushed, and cleared it, while reclaim emptied a
//! second entry and set it again. The next operation found it clear, and returned without a flush.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::RECLAIM_AND_TWO_DROPS;

pub(super) const BUG: PastBug = PastBug {
    name: "pending-batch-cleared-by-a-racing-flush",
    source: "coherence.md 7 row 21: Linux 5ee2fa2f0636",
    story: "That a batch was pending in an address space was a flag. An operation saw it, flushed, and cleared \
            it, while reclaim emptied a second entry and set it again. The next operation found it clear, and \
            returned without a flush.",
    mistake: Mistake::Coherence(coherence::Fault::BatchClearedByRacingFlush),
    scenario: &RECLAIM_AND_TWO_DROPS,
    breaks: "D3",
};
