//! A page of a file was taken back without a flush and forgotten. The next who wanted it read it again into another frame, and
//! stored to it, while CPUs went on reading the first.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_FIRST_USE;

pub(super) const BUG: PastBug = PastBug {
    name: "waiting-page-read-again",
    source: "performance.md 3.4",
    story: "A page of a file was taken back without a flush and forgotten. The next who wanted it read it again \
            into another frame, and stored to it, while CPUs went on reading the first.",
    mistake: Mistake::Memory(memory::Mistake::WaitingPageForgotten),
    scenario: &PUT_BY_AND_FIRST_USE,
    breaks: "D3",
};
