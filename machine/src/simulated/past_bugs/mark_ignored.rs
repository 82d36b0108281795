//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. A CPU that had been spared took its mark away
//! on its way back to user mode and flushed nothing. A batch had relied on it and freed the frame.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::RECLAIM_AND_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "mark-ignored",
    source: "ceasefire (2026)",
    story: "A CPU that had been spared took its mark away on its way back to user mode and flushed nothing. \
            A batch had relied on it and freed the frame.",
    mistake: Mistake::Coherence(coherence::Fault::MarkIgnored),
    scenario: &RECLAIM_AND_SYSTEM_CALL,
    breaks: "D1",
};
