//! mremap looked whether there was a table to move, and took the locks then. In between, the table was taken out and
//! freed by somebody who puts large pages in the place of a file's small ones. What mremap put at the new address was
//! a pointer to memory that was no table any more.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::TABLE_MOVE_AND_RETRACTION;

pub(super) const BUG: PastBug = PastBug {
    name: "table-retracted-while-it-moves",
    source: "coherence.md 7 row 32: CVE-2024-50066, Linux 6fa1066fc5d0",
    story: "mremap looked whether there was a table to move, and took the locks then. In between, the \
            table was taken out and freed by somebody who puts large pages in the place of a file's \
            small ones. What mremap put at the new address was a pointer to memory that was no table any \
            more.",
    mistake: Mistake::Memory(memory::Mistake::MovedTableReadTooEarly),
    scenario: &TABLE_MOVE_AND_RETRACTION,
    breaks: "D1",
};
