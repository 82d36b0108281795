//! mremap moved a pointer to a whole table without the locks that keep those off who come to a page by its reverse
//! map. Such a one had found the table under its old address; he emptied the entry when the table had gone elsewhere,
//! and flushed the old address. A CPU that used the page at its new address kept it when it was freed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::TABLE_MOVE_AND_EVICTION_BEHIND_IT;

pub(super) const BUG: PastBug = PastBug {
    name: "table-moved-beside-a-reverse-walk",
    source: "coherence.md 7 row 24: CVE-2022-41222, Linux 97113eb39fa7",
    story: "mremap moved a pointer to a whole table without the locks that keep those off who come to a \
            page by its reverse map. Such a one had found the table under its old address; he emptied \
            the entry when the table had gone elsewhere, and flushed the old address. A CPU that used \
            the page at its new address kept it when it was freed.",
    mistake: Mistake::Memory(memory::Mistake::MovedBesideReverseWalks),
    scenario: &TABLE_MOVE_AND_EVICTION_BEHIND_IT,
    breaks: "D1",
};
