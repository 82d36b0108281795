//! A CPU that came back from borrowing a space read the generation and joined the set of those to be told afterwards. A
//! request made in between found the CPU not there and advanced the generation behind its back. The CPU went on with what
//! it had cached.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::lazy::COME_BACK_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "generation-read-before-coming-back",
    source: "coherence.md 1.5; models/lazy_tso.py",
    story: "A CPU that came back from borrowing a space read the generation and joined the set of those to be \
            told afterwards. A request made in between found the CPU not there and advanced the generation \
            behind its back. The CPU went on with what it had cached.",
    mistake: Mistake::Coherence(coherence::Fault::GenerationBeforeSetComingBack),
    scenario: &COME_BACK_AND_MUNMAP,
    breaks: "D",
};
