//! Where every change is broadcast, what a CPU kept under a shared tag is never stale, and Linux compares nothing when it enters
//! such a space. A change that nobody else had to hear of was not broadcast, as no other CPU ran the space at that moment. One
//! that had run it before came back and found its old entries.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::broadcast::BROADCAST_WHILE_ENTERING;

pub(super) const BUG: PastBug = PastBug {
    name: "tag-of-a-broadcast-trusted",
    source: "coherence.md 1.13: spaces with a global tag bypass the comparison",
    story: "Where every change is broadcast, what a CPU kept under a shared tag is never stale, and Linux compares nothing when it \
            enters such a space. A change that nobody else had to hear of was not broadcast, as no other CPU ran the space at \
            that moment. One that had run it before came back and found its old entries.",
    mistake: Mistake::Coherence(coherence::Fault::NoComparisonEntering),
    scenario: &BROADCAST_WHILE_ENTERING,
    breaks: "D1",
};
