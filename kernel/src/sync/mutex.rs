//! A lock that sleeps while it waits.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

use lock_api::GuardNoSend;

use super::WaitQueue;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and someone may be asleep waiting for it.
const CONTENDED: u32 = 2;

/// Raw form, for other crates' generic locks.
pub(crate) struct RawMutex {
    state: AtomicU32,
    waiting: WaitQueue,
}

// SAFETY: only the task that moved the state away from FREE holds the lock; acquire and release order the data.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api builds each lock from this value")]
    const INIT: Self = Self { state: AtomicU32::new(FREE), waiting: WaitQueue::new() };
    type GuardMarker = GuardNoSend;

    fn lock(&self) {
        if !self.try_lock() {
            self.waiting.wait(|| (self.state.swap(CONTENDED, Ordering::Acquire) == FREE).then_some(()));
        }
    }

    fn try_lock(&self) -> bool {
        self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            self.waiting.wake_one();
        }
    }
}

/// Sleeping lock around a value.
pub(crate) type Mutex<T> = lock_api::Mutex<RawMutex, T>;
