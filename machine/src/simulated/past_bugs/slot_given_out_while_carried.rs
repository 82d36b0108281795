//! A slot was given out while another page was still carried to it.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::swap::SWAP_TWICE_INTO_ONE_SLOT;

pub(super) const BUG: PastBug = PastBug {
    name: "slot-given-out-while-carried",
    source: "Linux 13ddaf26be32 has it of a slot that is read",
    story: "The last owner had come back for the page, so that the slot was free. The transfer that had begun ended after that of the next page, and the slot held the wrong one.",
    mistake: Mistake::Memory(memory::Mistake::SlotGivenOutWhileCarried),
    scenario: &SWAP_TWICE_INTO_ONE_SLOT,
    breaks: "D2",
};
