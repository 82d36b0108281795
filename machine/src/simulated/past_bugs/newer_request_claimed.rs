//! A CPU dropped the range of one request and noted the newest generation instead of the request's own. A newer request
//! had been made meanwhile. When it came, it was taken for served.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_AND_ONE_READS;

pub(super) const BUG: PastBug = PastBug {
    name: "newer-request-claimed",
    source: "coherence.md 1.7 below row 8",
    story: "A CPU dropped the range of one request and noted the newest generation instead of the request's own. \
            A newer request had been made meanwhile. When it came, it was taken for served.",
    mistake: Mistake::Coherence(coherence::Fault::ClaimsCurrent),
    scenario: &TWO_DROP_AND_ONE_READS,
    breaks: "D1",
};
