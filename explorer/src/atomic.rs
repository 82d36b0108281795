//! Atomics with the interface of `core`'s, each of whose accesses is a step that the schedule decides about.
//!
//! They are `core`'s in memory, so that raw memory may be looked at as them. Ordering arguments are taken and, but for the
//! sequentially consistent store, make no difference: on x86 they make none to the processor.

use core::sync::atomic::Ordering;
use std::panic::Location;

use crate::memory::Word;
use crate::processor::{exchange, full_fence, load, store};

/// A fence. Only the sequentially consistent one is an instruction on x86.
#[track_caller]
pub fn fence(ordering: Ordering) {
    if ordering == Ordering::SeqCst {
        full_fence(Location::caller());
    }
}

macro_rules! atomic {
    ($(#[$about:meta])* $name:ident, $value:ty, $inner:ty, $word:path) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name($inner);

        impl $name {
            /// With this value.
            pub const fn new(value: $value) -> Self {
                Self(<$inner>::new(value))
            }

            pub(crate) fn word(&self) -> Word {
                $word(&raw const self.0)
            }

            /// Loads.
            #[track_caller]
            pub fn load(&self, _: Ordering) -> $value {
                load(self.word(), Location::caller()) as $value
            }

            /// Stores; if sequentially consistent, by a locked exchange.
            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                if ordering == Ordering::SeqCst {
                    self.swap(value, ordering);
                } else {
                    store(self.word(), value.into(), 0, Location::caller());
                }
            }

            /// The value as it is visible, without a step: for records of the checkers' own.
            pub fn peek(&self) -> $value {
                self.0.load(Ordering::Relaxed)
            }

            /// Sets the value, without a step: for records of the checkers' own.
            pub fn poke(&self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }

            /// Adds 1 unless `limit` is there, in one step; says whether it did.
            #[track_caller]
            pub fn add_one_unless(&self, limit: $value) -> bool {
                let change = |old| (old as $value != limit).then(|| old + 1);
                exchange(self.word(), change, Location::caller()).is_ok()
            }

            #[track_caller]
            fn change(&self, change: impl Fn($value) -> $value) -> $value {
                let changed =
                    exchange(self.word(), |old| Some(change(old as $value).into()), Location::caller());
                changed.unwrap_or_else(|old| old) as $value
            }

            /// Exchanges.
            #[track_caller]
            pub fn swap(&self, value: $value, _: Ordering) -> $value {
                self.change(|_| value)
            }

            /// Adds, wrapping; returns what was there.
            #[track_caller]
            pub fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.change(|old| old.wrapping_add(value))
            }

            /// Subtracts, wrapping; returns what was there.
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.change(|old| old.wrapping_sub(value))
            }

            /// Stores the value if it is greater; returns what was there.
            #[track_caller]
            pub fn fetch_max(&self, value: $value, _: Ordering) -> $value {
                self.change(|old| old.max(value))
            }

            /// Sets bits; returns what was there.
            #[track_caller]
            pub fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.change(|old| old | value)
            }

            /// Keeps bits; returns what was there.
            #[track_caller]
            pub fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.change(|old| old & value)
            }

            /// Exchanges, if `current` is there.
            ///
            /// # Errors
            /// What is there instead.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                let change = |old| (old as $value == current).then(|| u64::from(new));
                let changed = exchange(self.word(), change, Location::caller());
                changed.map(|old| old as $value).map_err(|old| old as $value)
            }
        }
    };
}

atomic!(
    /// As `core`'s.
    AtomicU64, u64, core::sync::atomic::AtomicU64, Word::Wide
);
atomic!(
    /// As `core`'s.
    AtomicU32, u32, core::sync::atomic::AtomicU32, Word::Narrow
);
