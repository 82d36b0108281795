//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. An initiator spared a CPU in the kernel the
//! interrupt and did not mark it, as if being in the kernel were enough. The CPU came back to user mode with the translation, and
//! read a page that had been unmapped.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::MUNMAP_AND_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "kernel-spared-unmarked",
    source: "ceasefire (2026)",
    story: "An initiator spared a CPU in the kernel the interrupt and did not mark it, as if being in the \
            kernel were enough. The CPU came back to user mode with the translation, and read a page that \
            had been unmapped.",
    mistake: Mistake::Coherence(coherence::Fault::KernelSparedUnmarked),
    scenario: &MUNMAP_AND_SYSTEM_CALL,
    breaks: "D1",
};
