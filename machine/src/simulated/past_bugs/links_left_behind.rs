//! A table was freed that a CPU's own tables still led to.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sharers::SHARER_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "links-left-behind",
    source: "coherence/src/sharers.rs",
    story: "The CPU was told to drop what it had cached, and did. Then its walker went the same way again, through a page that was somebody else's.",
    mistake: Mistake::Memory(memory::Mistake::LinksLeftBehind),
    scenario: &SHARER_AND_MUNMAP,
    breaks: "D1",
};
