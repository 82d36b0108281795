//! A CPU went over to tables of its own with what it had cached by way of the space's.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sharers::SHARER_OF_ALL;

pub(super) const BUG: PastBug = PastBug {
    name: "finder-keeps-translations",
    source: "coherence/src/sharers.rs",
    story: "It was none of the sharers of the tables that its cached entries were from, and no longer one of those that find all.",
    mistake: Mistake::Memory(memory::Mistake::FinderKeepsTranslations),
    scenario: &SHARER_OF_ALL,
    breaks: "D",
};
