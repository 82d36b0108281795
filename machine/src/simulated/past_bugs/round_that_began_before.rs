//! A caller found another one's round in progress and took its end for its own. That round had looked who runs the process
//! before the caller stored what the others had to see. A thread that came from the kernel in between was served by
//! neither.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::rounds::TWO_CALLERS;

pub(super) const BUG: PastBug = PastBug {
    name: "round-that-began-before",
    source: "ours could: rounds are what issue 6 asks for in place of row 31's lock",
    story: "A caller found another one's round in progress and took its end for its own. That round had \
            looked who runs the process before the caller stored what the others had to see. A thread \
            that came from the kernel in between was served by neither.",
    mistake: Mistake::Coherence(coherence::Fault::RoundThatBeganBefore),
    scenario: &TWO_CALLERS,
    breaks: "B",
};
