//! An IOMMU that shares a process's tables caches the upper levels too. Linux freed page tables without having it drop those.
//! It went on to walk, and to set bits, in memory that had a new owner.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::devices::DEVICE_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "device-walks-freed-tables",
    source: "coherence.md 7 row 43: CVE-2025-71089, Linux 72f98ef9a4be; CVE-2025-71202",
    story: "An IOMMU that shares a process's tables caches the upper levels too. Linux freed page tables without having it drop \
            those. It went on to walk, and to set bits, in memory that had a new owner.",
    mistake: Mistake::Coherence(coherence::Fault::DevicesKeepFreedTables),
    scenario: &DEVICE_AND_MUNMAP,
    breaks: "D1",
};
