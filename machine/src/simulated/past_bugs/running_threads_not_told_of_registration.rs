//! A process registered, and CPUs that switched to it later took note. Those that ran its other threads at that moment were
//! not told. Barriers on behalf of all went past them for as long as they did not switch.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::registration::TWO_REGISTER;

pub(super) const BUG: PastBug = PastBug {
    name: "running-threads-not-told-of-registration",
    source: "coherence.md 4.4; the races behind 227a4aadc75b",
    story: "A process registered, and CPUs that switched to it later took note. Those that ran its other \
            threads at that moment were not told. Barriers on behalf of all went past them for as long \
            as they did not switch.",
    mistake: Mistake::Coherence(coherence::Fault::RegistrationNotTold),
    scenario: &TWO_REGISTER,
    breaks: "B",
};
