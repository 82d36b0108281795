//! A CPU that switched away left the sets of the old space first and loaded the new root then. In between it was told of
//! nothing. Its walker went through tables that were freed at that moment.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::SWITCHING_AWAY_WHILE_TABLES_ARE_FREED;

pub(super) const BUG: PastBug = PastBug {
    name: "sets-left-before-the-load",
    source: "coherence.md 1.2 T6; 7 row 35: CVE-2025-37964",
    story: "A CPU that switched away left the sets of the old space first and loaded the new root then. In \
            between it was told of nothing. Its walker went through tables that were freed at that moment.",
    mistake: Mistake::Coherence(coherence::Fault::LeaveSetsBeforeLoad),
    scenario: &SWITCHING_AWAY_WHILE_TABLES_ARE_FREED,
    breaks: "D1",
};
