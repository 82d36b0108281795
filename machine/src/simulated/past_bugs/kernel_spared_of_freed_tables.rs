//! Of a kind that sparing CPUs in the kernel makes possible; no kernel we know had it. A CPU in the kernel uses no user translation,
//! so it was spared also when tables were freed. But its walker runs on, whatever its kernel does, and was in a table that had become
//! a page.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::kernel_mode::TABLES_FREED_BESIDE_A_SYSTEM_CALL;

pub(super) const BUG: PastBug = PastBug {
    name: "kernel-spared-of-freed-tables",
    source: "ceasefire (2026)",
    story: "A CPU in the kernel uses no user translation, so it was spared also when tables were freed. But \
            its walker runs on, whatever its kernel does, and was in a table that had become a page.",
    mistake: Mistake::Coherence(coherence::Fault::KernelSparedOfTables),
    scenario: &TABLES_FREED_BESIDE_A_SYSTEM_CALL,
    breaks: "D1",
};
