//! The pages of a hole went back to the allocator as soon as no entry mapped them. A CPU still held one.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::holes::HOLE_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "hole-freed-before-flush",
    source: "the free rule of coherence.md 0.4; Linux: unmap_mapping_range ends in a flush before pages are freed",
    story: "The pages of a hole went back to the allocator as soon as no entry mapped them. A CPU still held one.",
    mistake: Mistake::Memory(memory::Mistake::HoleFreedBeforeFlush),
    scenario: &HOLE_AND_READER,
    breaks: "D1",
};
