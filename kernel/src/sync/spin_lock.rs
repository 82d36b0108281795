//! A lock that waits by spinning and leaves interrupts alone.
//!
//! The holder cannot be switched away (the kernel is not preemptible and a holder must not sleep), so waits are short.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use lock_api::GuardNoSend;

use crate::cpu::{Aligned, MAX_CPUS, PerCpu};

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
        let taken = self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if cfg!(debug_assertions) && taken {
            HELD.here().fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    unsafe fn unlock(&self) {
        if cfg!(debug_assertions) {
            HELD.here().fetch_sub(1, Ordering::Relaxed);
        }
        self.locked.store(false, Ordering::Release);
    }
}

/// Spinning locks that each CPU holds; counted in builds with debug assertions only.
static HELD: PerCpu<AtomicU32> = PerCpu::new([const { Aligned(AtomicU32::new(0)) }; MAX_CPUS]);

/// In builds with debug assertions: panics if this CPU holds a spinning lock, because whoever waits for it on this CPU would
/// spin for ever.
pub(crate) fn assert_none_held() {
    debug_assert!(HELD.here().load(Ordering::Relaxed) == 0, "a task sleeps or yields with a spinning lock held");
}

/// Spinning lock around a value.
pub(crate) type SpinLock<T> = lock_api::Mutex<RawSpinLock, T>;
/// Access to a `SpinLock`'s value.
pub(crate) type SpinLockGuard<'a, T> = lock_api::MutexGuard<'a, RawSpinLock, T>;
