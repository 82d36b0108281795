//! What a batch had emptied did not advance the generation of its address space. So the CPUs that were told at its end took
//! themselves for up to date, and flushed nothing. Pages were freed while CPUs went on reading them.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::RECLAIM_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "batch-without-generation",
    source: "coherence.md 7 row 26, as a batch: Linux 8f1d56f64f8d",
    story: "What a batch had emptied did not advance the generation of its address space. So the CPUs that were \
            told at its end took themselves for up to date, and flushed nothing. Pages were freed while CPUs \
            went on reading them.",
    mistake: Mistake::Coherence(coherence::Fault::BatchWithoutGeneration),
    scenario: &RECLAIM_AND_READER,
    breaks: "D1",
};
