//! UFFDIO_COPY looked at the area, read its source, for which it let go of the lock, and installed the page. Meanwhile something else
//! had been mapped there, which the monitor had no business with.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::FILL_AND_MMAP_OVER;

pub(super) const BUG: PastBug = PastBug {
    name: "filled-where-the-area-was",
    source: "UFFDIO_COPY beside mmap; coherence.md 5.6",
    story: "UFFDIO_COPY looked at the area, read its source, for which it let go of the lock, and installed the page. Meanwhile \
            something else had been mapped there, which the monitor had no business with.",
    mistake: Mistake::Memory(memory::Mistake::FilledWithoutLookingAgain),
    scenario: &FILL_AND_MMAP_OVER,
    breaks: "D3",
};
