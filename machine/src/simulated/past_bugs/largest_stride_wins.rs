//! A flush of small pages was merged with one of a large reach, and went in steps of the larger. An invalidation drops
//! one small page by its own address only. So all but the first stayed cached.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::USER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "largest-stride-wins",
    source: "coherence.md 1.7, the stride",
    story: "A flush of small pages was merged with one of a large reach, and went in steps of the larger. An \
            invalidation drops one small page by its own address only. So all but the first stayed cached.",
    mistake: Mistake::Coherence(coherence::Fault::LargestStride),
    scenario: &USER_WALKS_FREED_TABLES,
    breaks: "D",
};
