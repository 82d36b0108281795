//! The cure of `late-marks-missed` that comes to mind first: the marks are taken once more behind the entries. A mark that munmap has just left there went, although
//! munmap had not flushed: a CPU stored through its old entry after the page was read, and the store was lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::CLEAN_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "late-marks-taken",
    source: "ours, found by reading",
    story: "The cure of late-marks-missed that comes to mind first: the marks are taken once more behind the entries. A \
            mark that munmap has just left there went, although munmap had not flushed: a CPU stored through its old \
            entry after the page was read, and the store was lost.",
    mistake: Mistake::Memory(memory::Mistake::LateMarksTaken),
    scenario: &CLEAN_AND_MUNMAP,
    breaks: "D2",
};
