//! A CPU that only borrowed a space loaded another one, and was still marked as a borrower. The next request made it let
//! go of what it had loaded, as borrowers may. It went on with no user mappings at all, or skipped flushes that it
//! needed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::ENTER_FROM_BORROWING;

pub(super) const BUG: PastBug = PastBug {
    name: "borrower-mark-kept",
    source: "coherence.md 7 row 17: Linux abee7c494d8c (2020)",
    story: "A CPU that only borrowed a space loaded another one, and was still marked as a borrower. The next \
            request made it let go of what it had loaded, as borrowers may. It went on with no user mappings at \
            all, or skipped flushes that it needed.",
    mistake: Mistake::Coherence(coherence::Fault::StaysLazy),
    scenario: &ENTER_FROM_BORROWING,
    breaks: "CPU",
};
