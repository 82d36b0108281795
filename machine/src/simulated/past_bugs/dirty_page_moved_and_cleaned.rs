//! mremap moved a dirty entry and flushed the old address later. In between, writeback found the page at its new
//! address, took the right to write and the dirty bit from it, flushed that address, and wrote the page out as it
//! was. A CPU that still had the old translation, dirty, went on storing: nobody noticed, and the page counted as
//! clean.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::address::MREMAP_AND_WRITEBACK;

pub(super) const BUG: PastBug = PastBug {
    name: "dirty-page-moved-and-cleaned",
    source: "coherence.md 7 row 2: Linux 5d1904204c99",
    story: "mremap moved a dirty entry and flushed the old address later. In between, writeback found \
            the page at its new address, took the right to write and the dirty bit from it, flushed that \
            address, and wrote the page out as it was. A CPU that still had the old translation, dirty, \
            went on storing: nobody noticed, and the page counted as clean.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedAfterUnlock),
    scenario: &MREMAP_AND_WRITEBACK,
    breaks: "D2",
};
