//! On one architecture a switch to a process's address space held no full barrier between telling others of it and running
//! the program. A caller saw the CPU elsewhere and left it out. The program's first load went past its first store all the
//! same.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::barrier::BARRIER_CROSSING;

pub(super) const BUG: PastBug = PastBug {
    name: "return-to-user-mode-without-barrier",
    source: "row M8: d6cfd1770f20 (2024)",
    story: "On one architecture a switch to a process's address space held no full barrier between \
            telling others of it and running the program. A caller saw the CPU elsewhere and left it \
            out. The program's first load went past its first store all the same.",
    mistake: Mistake::Coherence(coherence::Fault::PlainEnteringUser),
    scenario: &BARRIER_CROSSING,
    breaks: "B",
};
