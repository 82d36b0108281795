//! munmap found an entry gone whose flush waited until the frame was needed. It had nothing to flush, and returned, while the
//! program went on reading what it had just been told was gone.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "deferred-not-settled",
    source: "performance.md 3.4; coherence.md 7 row 3",
    story: "munmap found an entry gone whose flush waited until the frame was needed. It had nothing to flush, \
            and returned, while the program went on reading what it had just been told was gone.",
    mistake: Mistake::Coherence(coherence::Fault::DeferredNotSettled),
    scenario: &PUT_BY_AND_MUNMAP,
    breaks: "D3",
};
