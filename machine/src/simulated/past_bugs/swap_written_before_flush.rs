//! A page that goes to swap was written to its slot before the flush.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::swap::SWAP_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "swap-written-before-flush",
    source: "coherence.md 3, B1",
    story: "The entry was empty, and so the page was read for the disk. A CPU still stored to it through what it had cached, and the store was gone when the page came back.",
    mistake: Mistake::Memory(memory::Mistake::SwapWrittenBeforeFlush),
    scenario: &SWAP_AND_WRITER,
    breaks: "D2",
};
