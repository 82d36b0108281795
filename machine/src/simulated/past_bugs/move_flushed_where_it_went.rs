//! mremap has two ranges of addresses in hand, and flushed the one that the pages went to, where nothing had been.
//! CPUs kept the translations of the other. What they had there was freed when the pages were unmapped at their new
//! addresses.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::address::MREMAP_BESIDE_A_NEIGHBOUR;

pub(super) const BUG: PastBug = PastBug {
    name: "move-flushed-where-it-went",
    source: "our own: the wrong one of two ranges",
    story: "mremap has two ranges of addresses in hand, and flushed the one that the pages went to, \
            where nothing had been. CPUs kept the translations of the other. What they had there was \
            freed when the pages were unmapped at their new addresses.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedWhereItWent),
    scenario: &MREMAP_BESIDE_A_NEIGHBOUR,
    breaks: "D",
};
