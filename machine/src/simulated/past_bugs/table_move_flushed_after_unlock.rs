//! mremap moved a whole table, let others at its pages again, and flushed the old addresses then. One of them found a
//! page at its new address and freed it. A CPU still reached it through the old one, by a translation or by an upper
//! level that it had cached.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::TABLE_MOVE_AND_EVICTION;

pub(super) const BUG: PastBug = PastBug {
    name: "table-move-flushed-after-unlock",
    source: "coherence.md 7 row 8 for whole tables",
    story: "mremap moved a whole table, let others at its pages again, and flushed the old addresses \
            then. One of them found a page at its new address and freed it. A CPU still reached it \
            through the old one, by a translation or by an upper level that it had cached.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedAfterUnlock),
    scenario: &TABLE_MOVE_AND_EVICTION,
    breaks: "D1",
};
