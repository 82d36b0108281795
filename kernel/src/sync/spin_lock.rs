//! A lock that waits by spinning and leaves interrupts alone.
//!
//! The holder cannot be switched away (the kernel is not preemptible and a holder must not sleep), so waits are short.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};

use lock_api::GuardNoSend;

/// Raw form, for other crates' generic locks.
pub(crate) struct RawSpinLock {
    locked: AtomicBool,
}

// SAFETY: `try_lock` succeeds for one owner until its `unlock`; acquire and release order the data with it.
unsafe impl lock_api::RawMutex for RawSpinLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api builds each lock from this value")]
    const INIT: Self = Self { locked: AtomicBool::new(false) };
    type GuardMarker = GuardNoSend;

    fn lock(&self) {
        while !self.try_lock() {
            while self.locked.load(Ordering::Relaxed) {
                super::relax();
            }
        }
    }

    fn try_lock(&self) -> bool {
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

/// Spinning lock around a value.
pub(crate) type SpinLock<T> = lock_api::Mutex<RawSpinLock, T>;
/// Access to a `SpinLock`'s value.
pub(crate) type SpinLockGuard<'a, T> = lock_api::MutexGuard<'a, RawSpinLock, T>;
