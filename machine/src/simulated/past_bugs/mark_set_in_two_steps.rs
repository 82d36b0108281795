//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. An initiator read that a CPU was in the
//! kernel, and stored the mark in a second step. Between the two the CPU had looked for the mark and gone back to user mode, so it
//! was neither marked nor interrupted.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::MUNMAP_AND_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "mark-set-in-two-steps",
    source: "ceasefire (2026)",
    story: "An initiator read that a CPU was in the kernel, and stored the mark in a second step. Between \
            the two the CPU had looked for the mark and gone back to user mode, so it was neither marked nor \
            interrupted.",
    mistake: Mistake::Coherence(coherence::Fault::PlainMark),
    scenario: &MUNMAP_AND_SYSTEM_CALL,
    breaks: "D1",
};
