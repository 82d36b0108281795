//! A large page that falls to pieces maps the same frames as before, so nothing seemed to need a flush. A CPU that had the large
//! page went for a piece, and had both; what it used of the two was the machine's choice.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::SPLIT_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "large-split-not-flushed",
    source: "our own: the frames stay where they are",
    story: "A large page that falls to pieces maps the same frames as before, so nothing seemed to need a flush. \
            A CPU that had the large page went for a piece, and had both; what it used of the two was the \
            machine's choice.",
    mistake: Mistake::Memory(memory::Mistake::SplitNotFlushed),
    scenario: &SPLIT_AND_READER,
    breaks: "D4",
};
