//! Where write was taken from an entry, nothing was flushed, whether the entry was dirty or not. A CPU that had stored to the page
//! before has a dirty copy, and need not look at the entry any more: its stores went on.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::clean_entries::UNFLUSHED_MPROTECT_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "dirty-taken-for-clean",
    source: "our own: S3's further step, taken for all entries",
    story: "Where write was taken from an entry, nothing was flushed, whether the entry was dirty or not. A \
            CPU that had stored to the page before has a dirty copy, and need not look at the entry any \
            more: its stores went on.",
    mistake: Mistake::Coherence(coherence::Fault::DirtyTakenForClean),
    scenario: &UNFLUSHED_MPROTECT_AND_WRITER,
    breaks: "D3",
};
