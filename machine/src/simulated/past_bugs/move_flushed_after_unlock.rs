//! mremap released the locks that keep others off, and flushed the old addresses then. In between, the page was found at its
//! new address by truncation, and freed. A CPU still reached it through the old address.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::address::MREMAP_AND_EVICTION;

pub(super) const BUG: PastBug = PastBug {
    name: "move-flushed-after-unlock",
    source: "coherence.md 7 row 8: CVE-2018-18281, Linux eb66ae030829",
    story: "mremap released the locks that keep others off, and flushed the old addresses then. In between, the \
            page was found at its new address by truncation, and freed. A CPU still reached it through the old \
            address.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedAfterUnlock),
    scenario: &MREMAP_AND_EVICTION,
    breaks: "D1",
};
