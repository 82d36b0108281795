//! A kernel task took over a process's address space, and gave it up, by plain stores to the pointer that others read. No
//! barrier lay between the store and the accesses that followed. Who asked for one in between took the CPU for one that
//! runs something else.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::barrier::UNCOUNTED_COMING_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "kernel-task-without-barrier",
    source: "row M3: 618758ed3a4f (2020), and 5bc78502322a",
    story: "A kernel task took over a process's address space, and gave it up, by plain stores to the \
            pointer that others read. No barrier lay between the store and the accesses that followed. \
            Who asked for one in between took the CPU for one that runs something else.",
    mistake: Mistake::Coherence(coherence::Fault::PlainComingBack),
    scenario: &UNCOUNTED_COMING_BACK,
    breaks: "B",
};
