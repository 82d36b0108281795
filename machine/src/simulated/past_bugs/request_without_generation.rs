//! A shortcut skips requests that are not newer than what the CPU has flushed. Some requests carried no generation, which
//! reads as zero. So each of them was skipped.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::USER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "request-without-generation",
    source: "coherence.md 7 row 26: Linux 8f1d56f64f8d (2022)",
    story: "A shortcut skips requests that are not newer than what the CPU has flushed. Some requests carried no \
            generation, which reads as zero. So each of them was skipped.",
    mistake: Mistake::Coherence(coherence::Fault::RequestWithoutGeneration),
    scenario: &USER_WALKS_FREED_TABLES,
    breaks: "D1",
};
