//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. A CPU on its way back to user mode took its
//! mark away and flushed then. An interrupt that cannot be masked came between the two, found the CPU in user mode without a mark,
//! and read through what had not been flushed yet.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::NMI_AND_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "nmi-before-the-return-flush",
    source: "ceasefire (2026)",
    story: "A CPU on its way back to user mode took its mark away and flushed then. An interrupt that cannot \
            be masked came between the two, found the CPU in user mode without a mark, and read through what \
            had not been flushed yet.",
    mistake: Mistake::Coherence(coherence::Fault::MarkTakenAwayFirst),
    scenario: &NMI_AND_SYSTEM_CALL,
    breaks: "D1",
};
