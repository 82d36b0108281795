//! A spinning lock that keeps interrupts off while it is held, for data shared with interrupt handlers.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use lock_api::GuardNoSend;

use crate::arch::registers::{disable_interrupts, enable_interrupts, interrupts_enabled};

/// Raw form. Remembers whether interrupts were on when it was taken; guards must be dropped in reverse order.
pub(crate) struct RawInterruptLock {
    locked: AtomicBool,
    were_enabled: Cell<bool>,
}

// SAFETY: the cell is written and read by the holder only, between acquire and release.
unsafe impl Sync for RawInterruptLock {}

// SAFETY: as for `RawSpinLock`.
unsafe impl lock_api::RawMutex for RawInterruptLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api builds each lock from this value")]
    const INIT: Self = Self { locked: AtomicBool::new(false), were_enabled: Cell::new(false) };
    type GuardMarker = GuardNoSend;

    fn lock(&self) {
        while !self.try_lock() {
            while self.locked.load(Ordering::Relaxed) {
                super::relax();
            }
        }
    }

    fn try_lock(&self) -> bool {
        let enabled = interrupts_enabled();
        disable_interrupts();
        let taken = self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.were_enabled.set(enabled);
        } else if enabled {
            enable_interrupts();
        }
        taken
    }

    unsafe fn unlock(&self) {
        let enabled = self.were_enabled.get();
        self.locked.store(false, Ordering::Release);
        if enabled {
            enable_interrupts();
        }
    }
}

/// Interrupt-safe lock around a value.
pub(crate) type InterruptLock<T> = lock_api::Mutex<RawInterruptLock, T>;
