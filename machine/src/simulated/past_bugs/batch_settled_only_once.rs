//! A loop over page tables looked for a pending batch when it took the first lock. It released that lock, took another one, and did
//! not look again. What reclaim had emptied there meanwhile was taken for flushed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::RECLAIM_AND_UNMAP_OF_TWO_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "batch-settled-only-once",
    source: "coherence.md 7 row 40: Linux 383c4613c67c",
    story: "A loop over page tables looked for a pending batch when it took the first lock. It released that \
            lock, took another one, and did not look again. What reclaim had emptied there meanwhile was taken \
            for flushed.",
    mistake: Mistake::Memory(memory::Mistake::SettledOnlyOnce),
    scenario: &RECLAIM_AND_UNMAP_OF_TWO_TABLES,
    breaks: "D3",
};
