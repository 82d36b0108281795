//! A registration has two bits: one says that it was asked for, the other that every CPU knows. The first was taken for the
//! second. A thread that registered while another one was still registering was told that all was done, and its barriers
//! missed CPUs that had not been told.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::registration::TWO_REGISTER;

pub(super) const BUG: PastBug = PastBug {
    name: "announced-registration-accepted",
    source: "row M2: fc0d77387cb5 (2019)",
    story: "A registration has two bits: one says that it was asked for, the other that every CPU knows. \
            The first was taken for the second. A thread that registered while another one was still \
            registering was told that all was done, and its barriers missed CPUs that had not been told.",
    mistake: Mistake::Coherence(coherence::Fault::AnnouncementIsEnough),
    scenario: &TWO_REGISTER,
    breaks: "B",
};
