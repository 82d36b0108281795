//! Write permission was taken away from many pages, with one flush for all at the end, after the lock of the address
//! space was released. A fault in between found such a page shared and copied it. Another CPU stored to the old page
//! through its old entry meanwhile, and the store was lost.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::copy::FORK_AND_TWO_WRITERS;

pub(super) const BUG: PastBug = PastBug {
    name: "fork-flushed-after-unlock",
    source: "coherence.md 7 rows 18 and 19: Linux 29a951dfb3c3, 6ce64428d620 (2021)",
    story: "Write permission was taken away from many pages, with one flush for all at the end, after the lock \
            of the address space was released. A fault in between found such a page shared and copied it. \
            Another CPU stored to the old page through its old entry meanwhile, and the store was lost.",
    mistake: Mistake::Memory(memory::Mistake::ForkFlushedAfterUnlock),
    scenario: &FORK_AND_TWO_WRITERS,
    breaks: "D2",
};
