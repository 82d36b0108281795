//! Limits of one address space, and the rule against promising more memory than there is.
//!
//! The limits belong to a process (`RLIMIT_*`); they are copied here whenever they change, so that this crate need not
//! know what a process is. Overcommit is Linux's default heuristic: memory is promised freely, and a single request is
//! refused only when it alone could never be met. Mappings made with `MAP_NORESERVE`, shared ones and those that cannot
//! be written are not counted at all. So `ENOMEM` means "this can never fit"; running out later, page by page, is a
//! [`Fault::OutOfMemory`](crate::Fault::OutOfMemory), which the kernel answers by naming and killing a victim.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::Error;
use crate::range::PAGE_SIZE;

/// Which limit. Values are in bytes; `u64::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `RLIMIT_AS`: all that is mapped.
    AddressSpace,
    /// `RLIMIT_DATA`: private memory that can be written, and the heap.
    Data,
    /// `RLIMIT_STACK`: how far a stack may grow.
    Stack,
    /// `RLIMIT_MEMLOCK`: locked memory. None for a program that may lock as much as it likes.
    Locked,
}

const COUNT: usize = 4;
/// Linux's default for stacks.
const DEFAULT_STACK: u64 = 8 << 20;

/// The limits of one address space.
pub(crate) struct Limits([AtomicU64; COUNT]);

impl Limits {
    pub(crate) fn new() -> Self {
        let limits = Self([const { AtomicU64::new(u64::MAX) }; COUNT]);
        limits.set(Limit::Stack, DEFAULT_STACK);
        limits
    }

    pub(crate) fn set(&self, limit: Limit, bytes: u64) {
        self.0[limit as usize].store(bytes, Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize].load(Relaxed)
    }

    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        self.0.iter().zip(&copy.0).for_each(|(from, to)| to.store(from.load(Relaxed), Relaxed));
        copy
    }

    /// Whether `pages` of `limit` may be used.
    #[inline]
    pub(crate) fn check(&self, limit: Limit, pages: u64) -> Result<(), Error> {
        if pages.saturating_mul(PAGE_SIZE) > self.get(limit) { Err(Error::OutOfMemory) } else { Ok(()) }
    }
}
