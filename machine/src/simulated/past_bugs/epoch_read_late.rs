//! A CPU that came back to its space compared generations, and said then that it had reached the latest epoch. What had been
//! taken out in between it had not flushed, and nobody told it.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_COMING_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "epoch-read-late",
    source: "performance.md 3.3, M4",
    story: "A CPU that came back to its space compared generations, and said then that it had reached the latest \
            epoch. What had been taken out in between it had not flushed, and nobody told it.",
    mistake: Mistake::Coherence(coherence::Fault::EpochReadLate),
    scenario: &PUT_BY_AND_COMING_BACK,
    breaks: "D1",
};
