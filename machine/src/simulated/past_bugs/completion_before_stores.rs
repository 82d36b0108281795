//! When an invalidation is done, stores that were made through what it dropped must be visible. On some Arm processors the instruction
//! that waits for it returned before. A store that had waited in another CPU's buffer landed in a frame with a new owner.

use super::super::past_bug::{HardwareMistake, Mistake, PastBug};
use super::super::scenarios::broadcast::BROADCAST_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "completion-before-stores",
    source: "coherence.md 7 row 46: CVE-2025-10263, CVE-2026-53354 (Arm erratum)",
    story: "When an invalidation is done, stores that were made through what it dropped must be visible. On some Arm processors the \
            instruction that waits for it returned before. A store that had waited in another CPU's buffer landed in a frame \
            with a new owner.",
    mistake: Mistake::Hardware(HardwareMistake::CompletesBeforeStores),
    scenario: &BROADCAST_AND_WRITER,
    breaks: "D1",
};
