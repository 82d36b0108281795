//! An operation told the device before it changed the entries, as if that were asking for room. The device dropped what it had, walked
//! again and found the old entry still there. Nobody told it again when the page was freed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::devices::DEVICE_AND_MUNMAP_OF_ONE_PAGE;

pub(super) const BUG: PastBug = PastBug {
    name: "device-told-too-early",
    source: "issue 4; the order of coherence.md 2 rule G0, for devices",
    story: "An operation told the device before it changed the entries, as if that were asking for room. The device dropped what it \
            had, walked again and found the old entry still there. Nobody told it again when the page was freed.",
    mistake: Mistake::Coherence(coherence::Fault::DevicesToldFirst),
    scenario: &DEVICE_AND_MUNMAP_OF_ONE_PAGE,
    breaks: "D1",
};
