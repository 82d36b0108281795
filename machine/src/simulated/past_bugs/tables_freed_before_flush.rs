//! When there was no memory for a list of tables to be freed, a table was freed at once. Other CPUs still had the way
//! through it cached. Their walkers read, and wrote, the memory of the next owner.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::USER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "tables-freed-before-flush",
    source: "coherence.md 7 rows 7 and 12: Linux a6f572084fbe, 0ed1325967ab",
    story: "When there was no memory for a list of tables to be freed, a table was freed at once. Other CPUs \
            still had the way through it cached. Their walkers read, and wrote, the memory of the next owner.",
    mistake: Mistake::Memory(memory::Mistake::TablesFreedBeforeFlush),
    scenario: &USER_WALKS_FREED_TABLES,
    breaks: "D1",
};
