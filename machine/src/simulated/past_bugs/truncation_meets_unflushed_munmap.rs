//! munmap emptied entries and put its flush off to its end. The owner of the object looked for mappings of its pages, found none, and
//! went on, as if nobody could reach them. A CPU still did.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::TRUNCATE_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "truncation-meets-unflushed-munmap",
    source: "coherence.md 7 row 22: CVE-2022-39188, Linux b67fbebd4cf9",
    story: "munmap emptied entries and put its flush off to its end. The owner of the object looked for mappings \
            of its pages, found none, and went on, as if nobody could reach them. A CPU still did.",
    mistake: Mistake::Coherence(coherence::Fault::BatchMeetsNobody),
    scenario: &TRUNCATE_AND_MUNMAP,
    breaks: "D3",
};
