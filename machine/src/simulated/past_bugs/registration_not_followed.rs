//! Who asked for a barrier on behalf of all looked, without a lock, into the address spaces that other CPUs ran, which
//! could be freed meanwhile. The cure was a copy of the registration on each CPU, which every switch must refresh. Here
//! nobody ever looks into another's space, and what is left to forget is the refresh: a CPU that comes from a process
//! without registration to one with it is not told.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::registration::BETWEEN_REGISTERED_AND_OTHERS;

pub(super) const BUG: PastBug = PastBug {
    name: "registration-not-followed",
    source: "row M1: 227a4aadc75b (2019)",
    story: "Who asked for a barrier on behalf of all looked, without a lock, into the address spaces \
            that other CPUs ran, which could be freed meanwhile. The cure was a copy of the registration \
            on each CPU, which every switch must refresh. Here nobody ever looks into another's space, \
            and what is left to forget is the refresh: a CPU that comes from a process without \
            registration to one with it is not told.",
    mistake: Mistake::Coherence(coherence::Fault::RegistrationNotFollowed),
    scenario: &BETWEEN_REGISTERED_AND_OTHERS,
    breaks: "B",
};
