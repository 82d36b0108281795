//! There are fewer tags than spaces, so tags change hands. One was handed on without dropping what was cached under it. A
//! program read the memory of another one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::THREE_SPACES_ON_TWO_TAGS;

pub(super) const BUG: PastBug = PastBug {
    name: "tag-of-another-space-kept",
    source: "coherence.md 1.2 T1",
    story: "There are fewer tags than spaces, so tags change hands. One was handed on without dropping what was \
            cached under it. A program read the memory of another one.",
    mistake: Mistake::Coherence(coherence::Fault::TagKeptForAnother),
    scenario: &THREE_SPACES_ON_TWO_TAGS,
    breaks: "D1",
};
