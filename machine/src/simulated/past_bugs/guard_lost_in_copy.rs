//! A store found a page that was shared with a child, and made a copy ready. A monitor guarded the page meanwhile. The copy took its place
//! without the mark, writable: the monitor was never told of the store.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::GUARD_AND_COPY;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-lost-in-copy",
    source: "coherence.md 5.6: the write-protect mark and copy-on-write",
    story: "A store found a page that was shared with a child, and made a copy ready. A monitor guarded the page meanwhile. The \
            copy took its place without the mark, writable: the monitor was never told of the store.",
    mistake: Mistake::Memory(memory::Mistake::GuardLostInCopy),
    scenario: &GUARD_AND_COPY,
    breaks: "D3",
};
