//! fsync looked at the frames' marks, then at the entries, and wrote what either called dirty. An entry that went in between took its mark to a frame
//! that had been looked at: the call returned, and what had been stored before it was not on the disk.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::batch::WRITE_OUT_AND_DROP;

pub(super) const BUG: PastBug = PastBug {
    name: "late-marks-missed",
    source: "ours, found in review",
    story: "fsync looked at the frames' marks, then at the entries, and wrote what either called dirty. An entry that \
            went in between took its mark to a frame that had been looked at: the call returned, and what had \
            been stored before it was not on the disk.",
    mistake: Mistake::Memory(memory::Mistake::LateMarksMissed),
    scenario: &WRITE_OUT_AND_DROP,
    breaks: "the code under check gave up: D2",
};
