//! A device's translations were dropped where a program's calls took pages away, and nowhere else. Reclaim took a page that nobody had
//! stored to and gave its frame to others. The device had it in its cache, and went on reading.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::reclaim::RECLAIM_BESIDE_A_DEVICE;

pub(super) const BUG: PastBug = PastBug {
    name: "device-not-told-of-reclaim",
    source: "coherence.md 7 row 30, by a batch",
    story: "A device's translations were dropped where a program's calls took pages away, and nowhere else. Reclaim \
            took a page that nobody had stored to and gave its frame to others. The device had it in its cache, \
            and went on reading.",
    mistake: Mistake::Coherence(coherence::Fault::DevicesNotTold),
    scenario: &RECLAIM_BESIDE_A_DEVICE,
    breaks: "D1",
};
