//! The first store to a shared page put the copy in the place of the old page, and flushed afterwards. Another CPU, with
//! nothing cached, read the store from the copy. A third one still read the old page: a value that had been replaced was
//! seen after the one that replaced it.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::copy::COPY_AND_TWO_READERS;

pub(super) const BUG: PastBug = PastBug {
    name: "copy-mapped-before-flush",
    source: "coherence.md 7 row 37 (S. Dolan's reproducer); docs/design/0007-memory.md",
    story: "The first store to a shared page put the copy in the place of the old page, and flushed afterwards. \
            Another CPU, with nothing cached, read the store from the copy. A third one still read the old page: \
            a value that had been replaced was seen after the one that replaced it.",
    mistake: Mistake::Memory(memory::Mistake::CopyMappedBeforeFlush),
    scenario: &COPY_AND_TWO_READERS,
    breaks: "D4",
};
