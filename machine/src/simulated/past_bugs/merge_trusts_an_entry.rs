//! Who merged equal pages took the right to write from an entry, and flushed if it had it. It had none: somebody else had just taken it
//! away, and not flushed yet. A CPU with the old entry stored on, into a page that had been compared and given to others.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::merge::MERGE_TWICE_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "merge-trusts-an-entry",
    source: "coherence.md 7 row 5: Linux b3a81d0841a9 (2017)",
    story: "Who merged equal pages took the right to write from an entry, and flushed if it had it. It had none: \
            somebody else had just taken it away, and not flushed yet. A CPU with the old entry stored on, into \
            a page that had been compared and given to others.",
    mistake: Mistake::Memory(memory::Mistake::MergeTrustsEntries),
    scenario: &MERGE_TWICE_AND_WRITER,
    breaks: "D2",
};
