//! A second fork took the mark of being used from entries that it did not flush.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::copy::SECOND_FORK_AND_READER;

pub(super) const BUG: PastBug = PastBug {
    name: "shared-as-unused",
    source: "performance.md 3.4, M5: fork's mandatory flush takes the marks",
    story: "Fork takes the marks of being used from the entries that it flushes, so that the first store after it need tell nobody. It took them from \
        entries too which an earlier fork had made unwritable, and which it therefore did not flush. A CPU that had read such a page since saw the \
        new page first, by another CPU's word, and then the old one.",
    mistake: Mistake::Memory(memory::Mistake::SharedAsUnused),
    scenario: &SECOND_FORK_AND_READER,
    breaks: "D3",
};
