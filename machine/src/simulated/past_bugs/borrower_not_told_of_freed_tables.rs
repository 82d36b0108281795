//! CPUs that only borrow an address space need not hear of pages that go. Page tables were freed without telling them
//! either. Their walkers, which run ahead by themselves, went on through memory that had a new owner, and AMD processors
//! answered with machine checks.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::BORROWER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "borrower-not-told-of-freed-tables",
    source: "coherence.md 7 row 6: Linux b956575bed91 (2017)",
    story: "CPUs that only borrow an address space need not hear of pages that go. Page tables were freed \
            without telling them either. Their walkers, which run ahead by themselves, went on through memory \
            that had a new owner, and AMD processors answered with machine checks.",
    mistake: Mistake::Coherence(coherence::Fault::LazyNotToldOfTables),
    scenario: &BORROWER_WALKS_FREED_TABLES,
    breaks: "D1",
};
