//! mremap made the tables at the target as it came to need them. When there was no memory for the second it returned
//! its error, and left what it had moved where it was. The program, told that nothing had happened, found its page
//! gone.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::address::MREMAP_WITHOUT_MEMORY;

pub(super) const BUG: PastBug = PastBug {
    name: "move-given-up-in-the-middle",
    source: "coherence.md 6.1, 6.5: error part-way; T6-6",
    story: "mremap made the tables at the target as it came to need them. When there was no memory for \
            the second it returned its error, and left what it had moved where it was. The program, told \
            that nothing had happened, found its page gone.",
    mistake: Mistake::Memory(memory::Mistake::MoveGivenUpInTheMiddle),
    scenario: &MREMAP_WITHOUT_MEMORY,
    breaks: "D3",
};
