//! Pages were taken out of a table under its lock, and flushed after the lock was released. Whoever took the lock next
//! found the page gone and had nothing to flush. Its call returned while the page could still be read.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_THE_SAME_PAGE;

pub(super) const BUG: PastBug = PastBug {
    name: "drop-flushed-after-unlock",
    source: "coherence.md 7 row 25: Linux 60bae7370896 (2022); row 40: 383c4613c67c",
    story: "Pages were taken out of a table under its lock, and flushed after the lock was released. Whoever \
            took the lock next found the page gone and had nothing to flush. Its call returned while the page \
            could still be read.",
    mistake: Mistake::Memory(memory::Mistake::DropFlushedAfterUnlock),
    scenario: &TWO_DROP_THE_SAME_PAGE,
    breaks: "D3",
};
