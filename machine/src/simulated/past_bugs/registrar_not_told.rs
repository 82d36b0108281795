//! A process that registered had the other CPUs take note of it, and forgot its own. Until that CPU next switched, barriers
//! on behalf of all went past the very thread that had registered.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::registration::REGISTER_AND_GLOBAL_BARRIER;

pub(super) const BUG: PastBug = PastBug {
    name: "registrar-not-told",
    source: "row M7: ce29ddc47b91 (2021)",
    story: "A process that registered had the other CPUs take note of it, and forgot its own. Until that \
            CPU next switched, barriers on behalf of all went past the very thread that had registered.",
    mistake: Mistake::Coherence(coherence::Fault::RegistersOthersOnly),
    scenario: &REGISTER_AND_GLOBAL_BARRIER,
    breaks: "B",
};
