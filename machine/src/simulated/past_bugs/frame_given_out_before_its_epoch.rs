//! Pages were taken back without a flush, which was to come before their frames were used again. They were used again before it.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "frame-given-out-before-its-epoch",
    source: "performance.md 3.3, M4",
    story: "Pages were taken back without a flush, which was to come before their frames were used again. They \
            were used again before it.",
    mistake: Mistake::Coherence(coherence::Fault::DeferredNotFlushed),
    scenario: &PUT_BY_AND_READER,
    breaks: "D1",
};
