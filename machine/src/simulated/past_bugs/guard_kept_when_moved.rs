//! mremap took an area from its monitor, which had not asked to keep it, and left the marks in its entries. There was nobody who
//! could take them away again, and a store faulted for ever.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::GUARDED_PAGE_MOVES;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-kept-when-moved",
    source: "coherence.md 5.6; CVE-2025-21696",
    story: "mremap took an area from its monitor, which had not asked to keep it, and left the marks in its entries. There was \
            nobody who could take them away again, and a store faulted for ever.",
    mistake: Mistake::Memory(memory::Mistake::GuardKeptWhenMoved),
    scenario: &GUARDED_PAGE_MOVES,
    breaks: "an access",
};
