//! The table of a large page's pieces was hooked in before the large page was flushed. A CPU that had the large page went for a
//! piece, and had both, of which it might use either.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::large_pages::MUNMAP_OF_PART_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "large-pieces-mapped-before-flush",
    source: "the processors' manuals: pages of two sizes for one address",
    story: "The table of a large page's pieces was hooked in before the large page was flushed. A CPU that had \
            the large page went for a piece, and had both, of which it might use either.",
    mistake: Mistake::Memory(memory::Mistake::PiecesMappedBeforeFlush),
    scenario: &MUNMAP_OF_PART_AND_READER,
    breaks: "D4",
};
