//! A CPU came back to a space under the tag that still had its translations. It trusted them without asking what had been
//! flushed meanwhile. They led to frames that had new owners.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::ENTER_WITH_A_TAG_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "tag-entered-without-comparison",
    source: "coherence.md 1.2 T4 and T5; 7 row 10: Linux 72c0098d92ce",
    story: "A CPU came back to a space under the tag that still had its translations. It trusted them without \
            asking what had been flushed meanwhile. They led to frames that had new owners.",
    mistake: Mistake::Coherence(coherence::Fault::NoComparisonEntering),
    scenario: &ENTER_WITH_A_TAG_AND_MUNMAP,
    breaks: "D1",
};
