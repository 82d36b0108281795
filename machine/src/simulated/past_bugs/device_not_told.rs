//! A graphics processor caches translations of its own, and does not hear of what CPUs are told. Linux' driver gave pages back
//! without having it drop them. Programs for the processor could read and write memory that belonged to others.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::devices::DEVICE_AND_MUNMAP_OF_ONE_PAGE;

pub(super) const BUG: PastBug = PastBug {
    name: "device-not-told",
    source: "coherence.md 7 row 30: CVE-2022-0330, Linux 7938d61591d3; CVE-2022-4139",
    story: "A graphics processor caches translations of its own, and does not hear of what CPUs are told. Linux' driver gave pages \
            back without having it drop them. Programs for the processor could read and write memory that belonged to others.",
    mistake: Mistake::Coherence(coherence::Fault::DevicesNotTold),
    scenario: &DEVICE_AND_MUNMAP_OF_ONE_PAGE,
    breaks: "D1",
};
