//! A value that is set once and then only read.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// Set once, read often.
pub(crate) struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by the one caller that moved the state from EMPTY, and read only after FULL was seen.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: owning a `Once` is owning its value.
unsafe impl<T: Send> Send for Once<T> {}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Sets the value.
    ///
    /// # Panics
    /// If it is set already: two owners would disagree.
    pub(crate) fn set(&self, value: T) {
        let won = self.state.compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed).is_ok();
        assert!(won, "a value that can be set once was set twice");
        // SAFETY: only the winner of the exchange gets here, and nobody reads before FULL.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(FULL, Ordering::Release);
    }

    /// The value, if it is set.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: FULL is stored after the value, and it never changes again.
        (self.state.load(Ordering::Acquire) == FULL).then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// The value.
    ///
    /// # Panics
    /// If it is not set yet: the order of boot is wrong.
    pub(crate) fn expect(&self, what: &str) -> &T {
        match self.get() {
            Some(value) => value,
            None => panic!("{what} is used before it is set up"),
        }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == FULL {
            // SAFETY: FULL means that the value is there, and nobody else can see it any more.
            unsafe { self.value.get_mut().assume_init_drop() }
        }
    }
}
