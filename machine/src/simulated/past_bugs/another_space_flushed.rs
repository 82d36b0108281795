//! A CPU handled a flush of a space that it had not loaded. What it noted about that, it noted for the space that it had
//! loaded. Later it took a request for that space for an old one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::FLUSH_OF_ANOTHER_SPACE;

pub(super) const BUG: PastBug = PastBug {
    name: "another-space-flushed",
    source: "coherence.md 7 row 34: Linux 953753db887f (2025)",
    story: "A CPU handled a flush of a space that it had not loaded. What it noted about that, it noted for the \
            space that it had loaded. Later it took a request for that space for an old one.",
    mistake: Mistake::Coherence(coherence::Fault::ForeignFlushClaims),
    scenario: &FLUSH_OF_ANOTHER_SPACE,
    breaks: "D",
};
