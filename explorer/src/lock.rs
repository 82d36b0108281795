//! Locks whose waiting is seen by the explorer.
//!
//! What a lock protects is often plain memory, which the explorer does not watch. So each lock's word carries a digest of all
//! that its holders knew when they let go of it: whoever takes the lock learns that, and states in which the protected data
//! could differ are told apart. Letting go is a plain store, as on x86.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::processor::{observe, wait, with};
use crate::{AtomicU64, Digest};

/// Held by one.
#[derive(Debug, Default)]
pub struct ExclusiveLock(AtomicU64);

const HELD: u64 = 1;

/// What the current CPU knows, as a word without the lowest bits.
fn knowledge() -> u64 {
    with(|execution| execution.processor().history.number()).unwrap_or(0)
}

impl ExclusiveLock {
    /// Free.
    pub const fn new() -> Self {
        ExclusiveLock(AtomicU64::new(0))
    }

    /// Takes it, when it is free.
    #[track_caller]
    pub fn lock(&self) {
        while !self.try_lock() {
            wait();
        }
    }

    /// Takes it, if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> bool {
        let found = self.0.fetch_or(HELD, Acquire);
        found & HELD == 0
    }

    /// Lets go of it.
    #[track_caller]
    pub fn unlock(&self) {
        self.0.store(knowledge() & !HELD, Release);
    }
}

/// Held by one, or by some who only read.
#[derive(Debug, Default)]
pub struct SharedLock {
    /// How many readers there are, or `WRITER`.
    holders: AtomicU64,
    /// The digest.
    past: AtomicU64,
}

const WRITER: u64 = !0;

impl SharedLock {
    /// Free.
    pub const fn new() -> Self {
        SharedLock { holders: AtomicU64::new(0), past: AtomicU64::new(0) }
    }

    /// Takes it alone, when it is free.
    #[track_caller]
    pub fn lock_exclusive(&self) {
        while !self.try_lock_exclusive() {
            wait();
        }
    }

    /// Takes it alone, if it is free.
    #[track_caller]
    pub fn try_lock_exclusive(&self) -> bool {
        let taken = self.holders.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if taken {
            observe(self.past.peek());
        }
        taken
    }

    /// Takes it with others, when nobody has it alone.
    #[track_caller]
    pub fn lock_shared(&self) {
        while !self.try_lock_shared() {
            wait();
        }
    }

    /// Takes it with others, if nobody has it alone.
    #[track_caller]
    pub fn try_lock_shared(&self) -> bool {
        let taken = self.holders.add_one_unless(WRITER);
        if taken {
            observe(self.past.peek());
        }
        taken
    }

    /// Lets go of it as the only holder.
    #[track_caller]
    pub fn unlock_exclusive(&self) {
        self.past.poke(knowledge());
        self.holders.store(0, Release);
    }

    /// Lets go of it as one of its readers.
    #[track_caller]
    pub fn unlock_shared(&self) {
        let reader = Digest::EMPTY.with(knowledge());
        self.past.poke(Digest::from_number(self.past.peek()).including(reader).number());
        self.holders.fetch_sub(1, Release);
    }
}
