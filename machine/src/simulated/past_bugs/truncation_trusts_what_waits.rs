//! A file was cut off whose pages had been taken out and not flushed. The call found no entry that showed them, and returned.
//! The program went on reading what the file no longer had.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_TRUNCATE;

pub(super) const BUG: PastBug = PastBug {
    name: "truncation-trusts-what-waits",
    source: "performance.md 3.4",
    story: "A file was cut off whose pages had been taken out and not flushed. The call found no entry that \
            showed them, and returned. The program went on reading what the file no longer had.",
    mistake: Mistake::Coherence(coherence::Fault::DeferredNotMet),
    scenario: &PUT_BY_AND_TRUNCATE,
    breaks: "D3",
};
