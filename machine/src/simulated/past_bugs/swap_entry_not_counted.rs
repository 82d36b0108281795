//! An entry of a slot was copied by fork and not counted.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::swap::SWAP_AND_FORK;

pub(super) const BUG: PastBug = PastBug {
    name: "swap-entry-not-counted",
    source: "0022-swap.md, the entry",
    story: "The child dropped its entry, and with that the only owner that was counted: the slot was given to another page while the parent's entry still named it.",
    mistake: Mistake::Memory(memory::Mistake::SwapEntryNotCounted),
    scenario: &SWAP_AND_FORK,
    breaks: "no end",
};
