//! Whoever took out entries did not see that one owned a slot.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::swap::SWAP_AND_DROP;

pub(super) const BUG: PastBug = PastBug {
    name: "swap-entry-taken-for-empty",
    source: "0022-swap.md, the entry",
    story: "An entry that holds no page was taken for an empty one, and nothing was given up for it: the slot, and what was in it, were lost for ever.",
    mistake: Mistake::Memory(memory::Mistake::SwapEntryTakenForEmpty),
    scenario: &SWAP_AND_DROP,
    breaks: "1 slots are in use in the end",
};
