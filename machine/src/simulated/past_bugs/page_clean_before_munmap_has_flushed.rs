//! munmap gave up its mapping of a dirty file page, and flushed later. Writeback found no mapping in between, and took the page for
//! clean once it was written out. A CPU stored to it through its old entry, and the store was lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::CLEAN_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "page-clean-before-munmap-has-flushed",
    source: "coherence.md 7 row 27: Linux 5df397dec7c4, 1cf35d47712d",
    story: "munmap gave up its mapping of a dirty file page, and flushed later. Writeback found no mapping in \
            between, and took the page for clean once it was written out. A CPU stored to it through its old \
            entry, and the store was lost.",
    mistake: Mistake::Memory(memory::Mistake::EntriesTakenAsTheyAre),
    scenario: &CLEAN_AND_MUNMAP,
    breaks: "D2",
};
