//! Somebody took the right to write from a page and put its flush off. A store that found the entry so got a copy of the page,
//! while another CPU stored on through its old entry, into the page that had been copied. Its stores were lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::merge::MERGE_AND_TWO_WRITERS;

pub(super) const BUG: PastBug = PastBug {
    name: "copied-while-stores-land",
    source: "coherence.md 5.6; 7 rows 19 and 18: Linux 6ce64428d620, 29a951dfb3c3 (2021)",
    story: "Somebody took the right to write from a page and put its flush off. A store that found the entry so \
            got a copy of the page, while another CPU stored on through its old entry, into the page that had \
            been copied. Its stores were lost.",
    mistake: Mistake::Memory(memory::Mistake::CopySourceNotSettled),
    scenario: &MERGE_AND_TWO_WRITERS,
    breaks: "D2",
};
