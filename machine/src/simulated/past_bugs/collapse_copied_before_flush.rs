//! Small pages were copied into a large one while CPUs still had them writable. A store that came after the copy was lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::COLLAPSE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "collapse-copied-before-flush",
    source: "the copy rule of coherence.md 5.6; Linux flushes before it copies in khugepaged",
    story: "Small pages were copied into a large one while CPUs still had them writable. A store that came after \
            the copy was lost.",
    mistake: Mistake::Memory(memory::Mistake::CollapseCopiedBeforeFlush),
    scenario: &COLLAPSE_AND_WRITER,
    breaks: "D2",
};
