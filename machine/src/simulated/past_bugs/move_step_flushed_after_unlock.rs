//! Linux flushed each page table of a move by itself, and let go of the new table's lock before it did. In between somebody
//! could drop the pages where they had gone, and give their frames away.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::stepwise_moves::STEPWISE_MOVE_AND_EVICTION;

pub(super) const BUG: PastBug = PastBug {
    name: "move-step-flushed-after-unlock",
    source: "CVE-2018-18281: Linux before eb66ae030829",
    story: "Linux flushed each page table of a move by itself, and let go of the new table's lock before it \
            did. In between somebody could drop the pages where they had gone, and give their frames away.",
    mistake: Mistake::Memory(memory::Mistake::MoveFlushedAfterUnlock),
    scenario: &STEPWISE_MOVE_AND_EVICTION,
    breaks: "D1",
};
