//! The table of the small pages was freed after a flush of which CPUs that only borrow the space are not told. One of them had
//! the way to the table cached, and its walker went on into a table that nobody owned.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::COLLAPSE_AND_BORROWER;

pub(super) const BUG: PastBug = PastBug {
    name: "collapsed-table-not-declared",
    source: "CVE-2025-22045: a table was removed without a word to CPUs that are lazy",
    story: "The table of the small pages was freed after a flush of which CPUs that only borrow the space are \
            not told. One of them had the way to the table cached, and its walker went on into a table that \
            nobody owned.",
    mistake: Mistake::Memory(memory::Mistake::TablesNotCalledFreed),
    scenario: &COLLAPSE_AND_BORROWER,
    breaks: "D1",
};
