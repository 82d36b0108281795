//! A lock for many readers or one writer that sleeps while it waits. A waiting writer keeps new readers out.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use lock_api::GuardNoSend;

use super::WaitQueue;

const WRITER: u64 = 1;
/// One waiting writer.
const WAITING: u64 = 1 << 1;
const ONE_READER: u64 = 1 << 32;

/// Raw form, for other crates' generic locks. Bit 0: a writer holds it; bits 1 to 31: writers waiting; from 32: readers.
pub(crate) struct RawRwLock {
    state: AtomicU64,
    readers: WaitQueue,
    writers: WaitQueue,
}

impl RawRwLock {
    fn try_read(&self) -> bool {
        let admit = |state: u64| (state & (ONE_READER - 1) == 0).then(|| state + ONE_READER);
        self.state.try_update(Ordering::Acquire, Ordering::Relaxed, admit).is_ok()
    }

    /// Takes the lock for writing; `announced` is what this caller has added to the state while it waits.
    fn try_write(&self, announced: u64) -> bool {
        let admit = |state: u64| (state & WRITER == 0 && state < ONE_READER).then(|| state - announced + WRITER);
        self.state.try_update(Ordering::Acquire, Ordering::Relaxed, admit).is_ok()
    }

    fn wake_next(&self, state: u64) {
        if state & (ONE_READER - 1) & !WRITER != 0 {
            self.writers.wake_one();
        } else {
            self.readers.wake_all();
        }
    }
}

// SAFETY: readers and the writer exclude each other by the state word; acquire and release order the data.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api builds each lock from this value")]
    const INIT: Self = Self { state: AtomicU64::new(0), readers: WaitQueue::new(), writers: WaitQueue::new() };
    type GuardMarker = GuardNoSend;

    fn lock_shared(&self) {
        if !self.try_read() {
            self.readers.wait(|| self.try_read().then_some(()));
        }
    }

    fn try_lock_shared(&self) -> bool {
        self.try_read()
    }

    unsafe fn unlock_shared(&self) {
        let left = self.state.fetch_sub(ONE_READER, Ordering::Release) - ONE_READER;
        if left < ONE_READER && left != 0 {
            self.wake_next(left);
        }
    }

    fn lock_exclusive(&self) {
        if self.try_write(0) {
            return;
        }
        self.state.fetch_add(WAITING, Ordering::Relaxed);
        self.writers.wait(|| self.try_write(WAITING).then_some(()));
    }

    fn try_lock_exclusive(&self) -> bool {
        self.try_write(0)
    }

    unsafe fn unlock_exclusive(&self) {
        let left = self.state.fetch_sub(WRITER, Ordering::Release) - WRITER;
        self.wake_next(left);
    }
}
