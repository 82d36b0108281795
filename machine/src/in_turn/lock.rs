//! A lock that is never waited for, since one host thread plays every CPU, but counted: who lets others run while he holds one
//! may have them wait for ever.

use std::cell::{Cell, RefCell};

use lock_api::RawMutex;

std::thread_local! {
    /// Spinning locks that are held.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// Who comes when none is held any more.
    static NEXT: RefCell<Option<Box<dyn FnMut() -> bool>>> = const { RefCell::new(None) };
}

/// Calls this each time that this host thread lets go of its last lock, until it says that it has done what it wanted.
pub(super) fn set_next(next: impl FnMut() -> bool + 'static) {
    NEXT.set(Some(Box::new(next)));
}

fn let_next_in() {
    // Not while it is called.
    let Some(mut next) = NEXT.take() else { return };
    if !next() {
        NEXT.set(Some(next));
    }
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
        if HELD.get() == 0 {
            let_next_in();
        }
    }
}
