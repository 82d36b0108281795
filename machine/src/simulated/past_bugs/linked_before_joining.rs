//! A CPU could find a table before it was one of its sharers.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sharers::SHARER_AND_DROP;

pub(super) const BUG: PastBug = PastBug {
    name: "linked-before-joining",
    source: "coherence/src/sharers.rs",
    story: "Its walker ran ahead between the two steps and cached an entry. Who dropped the page read the table's sharers before the CPU was one, and told nobody.",
    mistake: Mistake::Memory(memory::Mistake::LinkedBeforeJoining),
    scenario: &SHARER_AND_DROP,
    breaks: "D",
};
