//! The first store to a page that had only been read replaced the shared page of zeroes, and flushed nothing, since
//! zeroes need no protection. Another CPU read the store. A third one, and then the same one, still read zeroes.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::copy::FIRST_STORE_AND_TWO_READERS;

pub(super) const BUG: PastBug = PastBug {
    name: "zeroes-not-flushed",
    source: "coherence.md 5.6: the source of a copy",
    story: "The first store to a page that had only been read replaced the shared page of zeroes, and flushed \
            nothing, since zeroes need no protection. Another CPU read the store. A third one, and then the same \
            one, still read zeroes.",
    mistake: Mistake::Memory(memory::Mistake::ZeroesNotFlushed),
    scenario: &FIRST_STORE_AND_TWO_READERS,
    breaks: "D4",
};
