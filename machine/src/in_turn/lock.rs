//! A lock that is never waited for, since one host thread plays every CPU, but counted: who lets others run while he holds one
//! may have them wait for ever.

use std::cell::Cell;

use lock_api::RawMutex;

std::thread_local! {
    /// Spinning locks that are held.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// How many locks this host thread holds.
pub(super) fn held() -> usize {
    HELD.get()
}

/// A spinning lock of this machine: it is never waited for, but it is counted.
#[allow(missing_debug_implementations, reason = "the lock inside has none")]
pub struct TurnLock(parking_lot::RawMutex);

// SAFETY: all calls go through to a lock that keeps the trait's promises.
unsafe impl RawMutex for TurnLock {
    const INIT: Self = Self(parking_lot::RawMutex::INIT);
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        self.0.lock();
        HELD.set(HELD.get() + 1);
    }

    fn try_lock(&self) -> bool {
        let locked = self.0.try_lock();
        HELD.set(HELD.get() + usize::from(locked));
        locked
    }

    unsafe fn unlock(&self) {
        HELD.set(HELD.get() - 1);
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock() }
    }
}
