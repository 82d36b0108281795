//! Reclaim emptied the entry of a page in a batch, whose flush was to come, and a monitor guarded the page. There was nothing in the
//! entry that could be stored to, so the guard had nothing to flush, and returned. The page had been stored to and stayed the object's,
//! and another CPU stored to it once more, through what it still held.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::guarded_objects::GUARD_BESIDE_RECLAIM;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-trusts-an-empty-entry",
    source: "coherence.md 5.6 and 7 row 3, together",
    story: "Reclaim emptied the entry of a page in a batch, whose flush was to come, and a monitor \
            guarded the page. There was nothing in the entry that could be stored to, so the guard \
            had nothing to flush, and returned. The page had been stored to and stayed the object's, \
            and another CPU stored to it once more, through what it still held.",
    mistake: Mistake::Memory(memory::Mistake::GuardTrustsEmptyEntries),
    scenario: &GUARD_BESIDE_RECLAIM,
    breaks: "D3",
};
