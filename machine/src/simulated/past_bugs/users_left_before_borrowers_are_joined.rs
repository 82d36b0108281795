//! A CPU that went idle left the set of users first and joined the set of borrowers then. In between it was in neither.
//! Tables were freed without telling it, and its walker was in them.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::BORROWER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "users-left-before-borrowers-are-joined",
    source: "docs/design/0001-lazy-sets.md; coherence.md 7 row 6",
    story: "A CPU that went idle left the set of users first and joined the set of borrowers then. In between it \
            was in neither. Tables were freed without telling it, and its walker was in them.",
    mistake: Mistake::Coherence(coherence::Fault::LeaveActiveFirst),
    scenario: &BORROWER_WALKS_FREED_TABLES,
    breaks: "D1",
};
