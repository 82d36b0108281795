//! A CPU that had missed two requests dropped the addresses of one of them, and noted that it was up to date with both.
//! What the other had taken away stayed in its cache. Nobody told it again.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_AND_ONE_READS;

pub(super) const BUG: PastBug = PastBug {
    name: "gap-rule-forgotten",
    source: "coherence.md 1.7 row 7",
    story: "A CPU that had missed two requests dropped the addresses of one of them, and noted that it was up to \
            date with both. What the other had taken away stayed in its cache. Nobody told it again.",
    mistake: Mistake::Coherence(coherence::Fault::NoGapRule),
    scenario: &TWO_DROP_AND_ONE_READS,
    breaks: "D1",
};
