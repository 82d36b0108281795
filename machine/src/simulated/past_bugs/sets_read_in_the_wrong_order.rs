//! An initiator that freed tables looked for borrowers first and for users afterwards. A CPU that became a borrower
//! between the two looks was found among neither. Its walker stayed in the freed tables.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::BORROWER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "sets-read-in-the-wrong-order",
    source: "docs/design/0001-lazy-sets.md; coherence.md 1.5",
    story: "An initiator that freed tables looked for borrowers first and for users afterwards. A CPU that \
            became a borrower between the two looks was found among neither. Its walker stayed in the freed \
            tables.",
    mistake: Mistake::Coherence(coherence::Fault::LazyReadFirst),
    scenario: &BORROWER_WALKS_FREED_TABLES,
    breaks: "D1",
};
