//! The only place atomics come from: `core`, or the stand-ins of the checkers loom, shuttle and our explorer (`simulated`).
//!
//! Three kinds of memory are told apart here, because they are checked differently.
//!
//! * *Shared* memory, through which CPUs make their agreements (sets, generations, requests, acknowledgements): `AtomicU64`
//!   and `fence`, which under a checker are the checker's own, so that it explores their interleavings and weak orders.
//! * [`Private`] values, which only their own CPU touches. Nothing another CPU does can interleave with them, so a checker
//!   need not look at them. They are atomics only to be `Sync` without unsafe code.
//! * [`Counter`]s, which carry no ordering and decide nothing.
//!
//! The handshakes are written with `Relaxed` (or acquire and release) accesses and `fence(SeqCst)`, never with `SeqCst`
//! accesses: a `SeqCst` access orders nothing but other `SeqCst` accesses, and loom does not check them.

#[cfg(not(any(loom, shuttle, simulated)))]
pub(crate) use core::sync::atomic::{AtomicU64, fence};
#[cfg(simulated)]
pub(crate) use explorer::{AtomicU64, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, fence};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicU64, fence};

pub(crate) use core::sync::atomic::Ordering;
use core::sync::atomic::Ordering::Relaxed;

/// Defines a constructor that is `const`, except under a checker, whose atomics must be made while it runs.
macro_rules! constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        #[cfg(not(any(loom, shuttle)))]
        $(#[$attribute])*
        $visibility const fn $($rest)*
        #[cfg(any(loom, shuttle))]
        $(#[$attribute])*
        $visibility fn $($rest)*
    };
}

/// An array whose every element is made by the same expression.
macro_rules! array_of {
    ($element:expr) => {{
        #[cfg(not(any(loom, shuttle)))]
        let array = [const { $element }; _];
        #[cfg(any(loom, shuttle))]
        let array = core::array::from_fn(|_| $element);
        array
    }};
}

pub(crate) use {array_of, constructor};

/// A value that only its own CPU reads and writes, with interrupts off or from its interrupt handler.
#[derive(Debug)]
pub(crate) struct Private(core::sync::atomic::AtomicU64);

impl Private {
    pub(crate) const fn new(value: u64) -> Self {
        Private(core::sync::atomic::AtomicU64::new(value))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// A count of events. Its additions are atomic because a CPU's interrupt handler may count in the middle of one.
#[derive(Debug)]
pub(crate) struct Counter(core::sync::atomic::AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Counter(core::sync::atomic::AtomicU64::new(0))
    }

    /// Adds, and returns the count before.
    #[inline]
    pub(crate) fn add(&self, amount: u64) -> u64 {
        self.0.fetch_add(amount, Relaxed)
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Whether a check has failed and unwinds. What is dropped then must not go on with the protocol, as it is in pieces.
pub(crate) fn is_unwinding() -> bool {
    #[cfg(any(loom, shuttle, simulated))]
    {
        extern crate std;
        std::thread::panicking()
    }
    #[cfg(not(any(loom, shuttle, simulated)))]
    false
}

/// Keeps a value alone on its cache line, so that CPUs that use its neighbours do not slow each other down.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);
