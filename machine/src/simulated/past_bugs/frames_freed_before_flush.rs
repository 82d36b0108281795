//! A page was unhooked, freed and then flushed. Another CPU had it cached until then. It read and wrote what the next
//! owner kept there.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::remove::MUNMAP_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "frames-freed-before-flush",
    source: "coherence.md 2 rule G0",
    story: "A page was unhooked, freed and then flushed. Another CPU had it cached until then. It read and wrote \
            what the next owner kept there.",
    mistake: Mistake::Memory(memory::Mistake::FramesFreedBeforeFlush),
    scenario: &MUNMAP_AND_READER,
    breaks: "D1",
};
