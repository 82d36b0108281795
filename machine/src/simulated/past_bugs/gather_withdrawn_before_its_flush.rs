//! The count by which operations know of each other was lowered, for want of order, before the flush that it stands for.
//! Who met the operation then found the entries gone and nobody announced. It returned to its program while the page could
//! still be seen.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::gathers::GATHERS_THAT_MEET;

pub(super) const BUG: PastBug = PastBug {
    name: "gather-withdrawn-before-its-flush",
    source: "row 4: 0a2c40487f3e and the series around it (2017)",
    story: "The count by which operations know of each other was lowered, for want of order, before the \
            flush that it stands for. Who met the operation then found the entries gone and nobody \
            announced. It returned to its program while the page could still be seen.",
    mistake: Mistake::Coherence(coherence::Fault::WithdrawnBeforeFlush),
    scenario: &GATHERS_THAT_MEET,
    breaks: "D3",
};
