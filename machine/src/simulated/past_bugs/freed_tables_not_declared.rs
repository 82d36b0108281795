//! A range was flushed because a page table in it had been freed, but the request did not say so. CPUs that borrowed the
//! space were left out, as they may be for pages. Their walkers stayed in the table.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::eviction::FORGETFUL_BORROWER;

pub(super) const BUG: PastBug = PastBug {
    name: "freed-tables-not-declared",
    source: "coherence.md 7 row 38: CVE-2025-22045",
    story: "A range was flushed because a page table in it had been freed, but the request did not say so. CPUs \
            that borrowed the space were left out, as they may be for pages. Their walkers stayed in the table.",
    mistake: Mistake::Memory(memory::Mistake::TablesNotCalledFreed),
    scenario: &FORGETFUL_BORROWER,
    breaks: "D1",
};
