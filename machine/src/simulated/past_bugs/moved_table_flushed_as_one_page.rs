//! A table that is freed is empty, so one invalidation in its reach is enough: it drops the upper levels. A table
//! that moves is full, and was flushed the same way. The translations of all its pages but the first stayed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::TABLE_MOVE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "moved-table-flushed-as-one-page",
    source: "our own: the stride of a table's flush",
    story: "A table that is freed is empty, so one invalidation in its reach is enough: it drops the \
            upper levels. A table that moves is full, and was flushed the same way. The translations of \
            all its pages but the first stayed.",
    mistake: Mistake::Memory(memory::Mistake::MovedTableFlushedAsOnePage),
    scenario: &TABLE_MOVE_AND_WRITER,
    breaks: "D3",
};
