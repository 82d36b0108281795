//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. An interrupt that cannot be masked came while
//! its CPU was in the kernel, and read the program's memory, as the space was loaded and used. No initiator waits for a CPU in the
//! kernel; the page was another's.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::NMI_AND_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "nmi-in-a-spared-kernel",
    source: "ceasefire (2026)",
    story: "An interrupt that cannot be masked came while its CPU was in the kernel, and read the program's \
            memory, as the space was loaded and used. No initiator waits for a CPU in the kernel; the page \
            was another's.",
    mistake: Mistake::Coherence(coherence::Fault::UsedInSparedKernel),
    scenario: &NMI_AND_SYSTEM_CALL,
    breaks: "D1",
};
