//! Callers of a barrier for one CPU's sequences shared rounds, as callers of barriers for all CPUs do. One took the end of
//! a round for its own that had served another CPU. The sequences that it meant went on.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sequences::SEQUENCES_ON_ONE_CPU;

pub(super) const BUG: PastBug = PastBug {
    name: "round-of-another-cpu-taken",
    source: "coherence.md 4.5, rounds for one CPU; ours could",
    story: "Callers of a barrier for one CPU's sequences shared rounds, as callers of barriers for all \
            CPUs do. One took the end of a round for its own that had served another CPU. The sequences \
            that it meant went on.",
    mistake: Mistake::Coherence(coherence::Fault::SingleRoundsShared),
    scenario: &SEQUENCES_ON_ONE_CPU,
    breaks: "B",
};
