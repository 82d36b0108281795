//! What was flushed was noted for the entries of leaf tables, and a large page's entry is in none. A CPU went on to store to a
//! large page that was read-only.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::MPROTECT_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "large-page-not-flushed",
    source: "our own: the entry of another level is forgotten",
    story: "What was flushed was noted for the entries of leaf tables, and a large page's entry is in none. A \
            CPU went on to store to a large page that was read-only.",
    mistake: Mistake::Memory(memory::Mistake::LargePageNotFlushed),
    scenario: &MPROTECT_AND_WRITER,
    breaks: "D3",
};
