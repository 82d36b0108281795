//! A CPU found a table and was not one of its sharers.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sharers::SHARER_AND_DROP;

pub(super) const BUG: PastBug = PastBug {
    name: "linked-without-joining",
    source: "coherence/src/sharers.rs",
    story: "It used the page, and whoever dropped it took it that nobody else could have found it.",
    mistake: Mistake::Memory(memory::Mistake::LinkedWithoutJoining),
    scenario: &SHARER_AND_DROP,
    breaks: "D",
};
