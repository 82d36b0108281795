//! mremap was to flush before it unlocks only if a dirty page of the page cache moved, and all else once at its end. The
//! moved entry carries the reference to its frame along. Whoever found the page at its new address could drop it, flush
//! the new address only, and free the frame, while a CPU still wrote to it through the old one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::address::MREMAP_AND_EVICTION;

pub(super) const BUG: PastBug = PastBug {
    name: "anonymous-pages-moved-without-flush",
    source: "coherence.md 6.2 to 6.4: S4, the test as posted (Mel Gorman, 5 June 2018); never merged",
    story: "mremap was to flush before it unlocks only if a dirty page of the page cache moved, and all else \
            once at its end. The moved entry carries the reference to its frame along. Whoever found the page at \
            its new address could drop it, flush the new address only, and free the frame, while a CPU still \
            wrote to it through the old one.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedAtEnd),
    scenario: &MREMAP_AND_EVICTION,
    breaks: "D1",
};
