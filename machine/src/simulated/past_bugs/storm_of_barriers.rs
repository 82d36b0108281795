//! Any program could ask for barriers from all its threads at once, and each of them interrupted every other CPU on its own
//! account. Handlers answered one caller after the other, and did nothing else. A lock, here rounds, lets one at a time.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::rounds::A_STORM;

pub(super) const BUG: PastBug = PastBug {
    name: "storm-of-barriers",
    source: "row 31: CVE-2024-26602, 944d5fe50f3f",
    story: "Any program could ask for barriers from all its threads at once, and each of them \
            interrupted every other CPU on its own account. Handlers answered one caller after the \
            other, and did nothing else. A lock, here rounds, lets one at a time.",
    mistake: Mistake::Coherence(coherence::Fault::NoRounds),
    scenario: &A_STORM,
    breaks: "B",
};
