//! An entry was believed to be unused that a device had used, which does not mark entries.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::devices::DEVICE_AND_FORK;

pub(super) const BUG: PastBug = PastBug {
    name: "unused-by-cpus-alone",
    source: "coherence.md 6.2 and 5.2; performance.md 3.1, B2",
    story: "Fork's flush told CPUs and devices, and the entry counted as unused from there on. A device walked to it again, which marked nothing. The first store after \
        the fork put a copy in the page's place without a flush, and the device went on reading the old page.",
    mistake: Mistake::Coherence(coherence::Fault::UnusedByCpusAlone),
    scenario: &DEVICE_AND_FORK,
    breaks: "D3",
};
