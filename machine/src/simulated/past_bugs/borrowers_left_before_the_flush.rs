//! A CPU that came back from borrowing left the set of borrowers before it had dropped what it missed. An initiator that
//! freed tables found it in neither set, or too late in the other. Its walker was in the tables.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::COMING_BACK_WHILE_TABLES_ARE_FREED;

pub(super) const BUG: PastBug = PastBug {
    name: "borrowers-left-before-the-flush",
    source: "docs/design/0001-lazy-sets.md; coherence.md 1.4",
    story: "A CPU that came back from borrowing left the set of borrowers before it had dropped what it missed. \
            An initiator that freed tables found it in neither set, or too late in the other. Its walker was in \
            the tables.",
    mistake: Mistake::Coherence(coherence::Fault::LeaveLazyBeforeFlush),
    scenario: &COMING_BACK_WHILE_TABLES_ARE_FREED,
    breaks: "D1",
};
