//! A CPU that borrows a space is spared the interrupts. When it came back, it did not look whether it had missed any. It
//! went on with what it had cached before.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::lazy::COME_BACK_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "generations-not-compared",
    source: "coherence.md 1.2 T4; models/lazy_tso.py nogen",
    story: "A CPU that borrows a space is spared the interrupts. When it came back, it did not look whether it \
            had missed any. It went on with what it had cached before.",
    mistake: Mistake::Coherence(coherence::Fault::NoComparison),
    scenario: &COME_BACK_AND_MUNMAP,
    breaks: "D1",
};
