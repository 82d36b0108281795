//! Pages that were taken out waited for the epoch that was already there, which CPUs had reached before. So their frames were
//! free at once.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "epoch-not-advanced",
    source: "performance.md 3.3, M4",
    story: "Pages that were taken out waited for the epoch that was already there, which CPUs had reached \
            before. So their frames were free at once.",
    mistake: Mistake::Coherence(coherence::Fault::EpochNotAdvanced),
    scenario: &PUT_BY_AND_READER,
    breaks: "D1",
};
