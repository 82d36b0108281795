//! The mark of being used was taken by writing an entry back as it had been read. Meanwhile hardware had marked it as stored to.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::reclaim::AGING_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "aged-by-plain-store",
    source: "coherence.md 5.5: hardware sets A and D at any time, so every change is an atomic exchange",
    story: "The mark of being used was taken by writing the entry back as it had been read. Meanwhile hardware had marked it as stored to: the page \
        counted as clean, and was taken back with what had been stored.",
    mistake: Mistake::Memory(memory::Mistake::AgedByPlainStore),
    scenario: &AGING_AND_WRITER,
    breaks: "D2",
};
