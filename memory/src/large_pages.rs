//! Who gets large pages, and how many there are.
//!
//! **The default is to give them to who asks** (`MADV_HUGEPAGE`), not to whoever has room, which is what Debian's Linux starts with. A
//! large page is two megabytes that are cleared at the first store, and taken from everybody else: for a program that stores to a few
//! pages of a large area that is a longer fault and up to 512 times the memory, and there is nothing here (no reclaim, no daemon) that
//! would give it back. Who maps much and uses it says so in one call. The setting is read at each fault and can be changed at any time;
//! for a comparison with Linux it is set alike on both sides.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Who gets large pages without asking, as `/sys/kernel/mm/transparent_hugepage/enabled` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LargePolicy {
    /// Whoever has room for one.
    Always,
    /// Who asked for them (`MADV_HUGEPAGE`).
    Madvise,
    /// Nobody.
    Never,
}

/// What is counted of large pages, for `/proc/vmstat` and `/proc/meminfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LargePageCounts {
    /// Mapped now. One that two address spaces share counts twice.
    pub mapped: u64,
    /// Mapped by a fault.
    pub faults: u64,
    /// Faults that found no run of frames, and got a small page.
    pub fallbacks: u64,
    /// Fallen to pieces.
    pub splits: u64,
    /// Made of small pages.
    pub collapses: u64,
    /// Not made of small pages for lack of a run of frames.
    pub failed_collapses: u64,
}

/// The policy, and the counts.
#[derive(Debug)]
pub struct LargePages {
    policy: AtomicU8,
    mapped: AtomicU64,
    faults: AtomicU64,
    fallbacks: AtomicU64,
    splits: AtomicU64,
    collapses: AtomicU64,
    failed_collapses: AtomicU64,
}

impl LargePages {
    pub(crate) const fn new() -> Self {
        Self {
            policy: AtomicU8::new(LargePolicy::Madvise as u8),
            mapped: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            fallbacks: AtomicU64::new(0),
            splits: AtomicU64::new(0),
            collapses: AtomicU64::new(0),
            failed_collapses: AtomicU64::new(0),
        }
    }

    /// The policy.
    #[inline]
    pub fn policy(&self) -> LargePolicy {
        match self.policy.load(Relaxed) {
            0 => LargePolicy::Always,
            1 => LargePolicy::Madvise,
            _ => LargePolicy::Never,
        }
    }

    /// Sets the policy, for faults from here on. Large pages that are mapped stay.
    pub fn set_policy(&self, policy: LargePolicy) {
        self.policy.store(policy as u8, Relaxed);
    }

    /// The counts.
    pub fn counts(&self) -> LargePageCounts {
        LargePageCounts {
            mapped: self.mapped.load(Relaxed),
            faults: self.faults.load(Relaxed),
            fallbacks: self.fallbacks.load(Relaxed),
            splits: self.splits.load(Relaxed),
            collapses: self.collapses.load(Relaxed),
            failed_collapses: self.failed_collapses.load(Relaxed),
        }
    }

    /// Whether any is mapped anywhere. Exact for a space whose area lock the caller holds exclusively: what it maps was counted before.
    #[inline]
    pub(crate) fn are_mapped(&self) -> bool {
        self.mapped.load(Relaxed) > 0
    }

    pub(crate) fn note_mapped(&self) {
        self.mapped.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_unmapped(&self) {
        self.mapped.fetch_sub(1, Relaxed);
    }

    pub(crate) fn note_fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_fallback(&self) {
        self.fallbacks.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_split(&self) {
        self.splits.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_collapse(&self) {
        self.collapses.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_failed_collapse(&self) {
        self.failed_collapses.fetch_add(1, Relaxed);
    }
}
