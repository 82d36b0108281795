//! A fault got a page from an object, the object lost it, and the fault put it in all the same: behind the back of who had just taken all
//! entries of it out.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::holes::HOLE_AND_FIRST_USE;

pub(super) const BUG: PastBug = PastBug {
    name: "lost-page-mapped",
    source: "of the kind of Linux d00806b183152 (faults beside truncation: the page is locked, and looked at again)",
    story: "A fault got a page from an object, the object lost it, and the fault put it in all the same: behind the \
            back of who had just taken all entries of it out.",
    mistake: Mistake::Memory(memory::Mistake::LostPageMapped),
    scenario: &HOLE_AND_FIRST_USE,
    breaks: "the code under check gave up: D4",
};
