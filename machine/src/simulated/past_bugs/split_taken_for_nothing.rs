//! A large page that is being split is neither large nor in pieces for a moment. Who dropped pages there found nothing, and returned.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::SPLIT_AND_DROP;

pub(super) const BUG: PastBug = PastBug {
    name: "split-taken-for-nothing",
    source: "our own, found by a reviewer on 2026-11-22",
    story: "A large page that is being split is neither large nor in pieces until its flush is over. Who dropped pages there looked without \
        the table's lock, found nothing, and returned; then the pieces were put there, with what the program had been told was gone.",
    mistake: Mistake::Memory(memory::Mistake::SplitTakenForNothing),
    scenario: &SPLIT_AND_DROP,
    breaks: "D3",
};
