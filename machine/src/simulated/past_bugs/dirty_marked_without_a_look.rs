//! Some processors mark an entry dirty, and store, without looking once more whether it still allows that (Intel's before the
//! control-flow enforcement came). Under the mechanism `clean`, which relies on that look, their stores land in pages that have become
//! read-only.

use super::super::past_bug::{HardwareMistake, Mistake, PastBug};
use super::super::scenarios::clean_entries::UNFLUSHED_MPROTECT_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "dirty-marked-without-a-look",
    source: "coherence.md 5.5: processors that may leave D=1, W=0",
    story: "Some processors mark an entry dirty, and store, without looking once more whether it still allows \
            that (Intel's before the control-flow enforcement came). Under the mechanism `clean`, which \
            relies on that look, their stores land in pages that have become read-only.",
    mistake: Mistake::Hardware(HardwareMistake::MarksDirtyBlindly),
    scenario: &UNFLUSHED_MPROTECT_AND_WRITER,
    breaks: "D3",
};
