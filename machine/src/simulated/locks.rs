//! The locks of this machine: the explorer's, with the interfaces that `memory` asks for.

#![allow(unsafe_code, reason = "the promises of `lock_api`'s traits")]

use explorer::{ExclusiveLock, SharedLock};
use lock_api::{GuardNoSend, RawMutex, RawRwLock};

/// A table's, an object's, a cache's lock. It waits with interrupts left as they are.
#[derive(Debug)]
pub struct TableLock(ExclusiveLock);

// SAFETY: the explorer's lock is taken by the one locked operation that finds it free.
unsafe impl RawMutex for TableLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's initial value")]
    const INIT: Self = TableLock(ExclusiveLock::new());
    type GuardMarker = GuardNoSend;

    fn lock(&self) {
        self.0.lock();
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        self.0.unlock();
    }
}

/// An address space's lock of areas.
#[derive(Debug)]
pub struct AreaLock(SharedLock);

// SAFETY: the explorer's lock lets in one writer or some readers, each by one locked operation.
unsafe impl RawRwLock for AreaLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's initial value")]
    const INIT: Self = AreaLock(SharedLock::new());
    type GuardMarker = GuardNoSend;

    fn lock_shared(&self) {
        self.0.lock_shared();
    }

    fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    unsafe fn unlock_shared(&self) {
        self.0.unlock_shared();
    }

    fn lock_exclusive(&self) {
        self.0.lock_exclusive();
    }

    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    unsafe fn unlock_exclusive(&self) {
        self.0.unlock_exclusive();
    }
}
