//! A page of a hole was faulted in anew before everybody had let go of the old one: one CPU stored to the new page, and another
//! still read the old one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::holes::HOLE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "hole-filled-before-flush",
    source: "D4 for holes; in Linux faults into a hole wait, too, since 8e205f779d14 (there against starvation)",
    story: "A page of a hole was faulted in anew before everybody had let go of the old one: one CPU stored to the \
            new page, and another still read the old one.",
    mistake: Mistake::Memory(memory::Mistake::HoleNotWaitedFor),
    scenario: &HOLE_AND_WRITER,
    breaks: "D4",
};
