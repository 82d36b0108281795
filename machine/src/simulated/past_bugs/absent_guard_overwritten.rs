//! A store found no page and no guard, and went to get the page from its object. Meanwhile a monitor guarded the page that was not
//! there. The store, with its page, looked for another page only, found none, and put its own in without the guard.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::guarded_objects::GUARD_OF_AN_ABSENT_PAGE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "absent-guard-overwritten",
    source: "coherence.md 5.6, on shared memory",
    story: "A store found no page and no guard, and went to get the page from its object. Meanwhile \
            a monitor guarded the page that was not there. The store, with its page, looked for \
            another page only, found none, and put its own in without the guard.",
    mistake: Mistake::Memory(memory::Mistake::AbsentGuardOverwritten),
    scenario: &GUARD_OF_AN_ABSENT_PAGE_AND_WRITER,
    breaks: "D3",
};
