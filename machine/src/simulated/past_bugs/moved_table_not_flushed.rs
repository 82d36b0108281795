//! Whether to flush was decided from the entries that had changed, and in a table that moves as a whole none has.
//! Here its only page had no rights, so that no translation of it could be cached, and yet a CPU had the upper levels
//! that lead to the table. When the page had its rights again at the new address, that CPU's walker found it at the
//! old one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::PROTECTED_TABLE_MOVE_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "moved-table-not-flushed",
    source: "our own: a table moves, and no entry of it changes",
    story: "Whether to flush was decided from the entries that had changed, and in a table that moves as \
            a whole none has. Here its only page had no rights, so that no translation of it could be \
            cached, and yet a CPU had the upper levels that lead to the table. When the page had its \
            rights again at the new address, that CPU's walker found it at the old one.",
    mistake: Mistake::Memory(memory::Mistake::MovedTableNotFlushed),
    scenario: &PROTECTED_TABLE_MOVE_AND_READER,
    breaks: "D3",
};
