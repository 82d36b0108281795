//! The generation of an address space: how many flushes have been requested for it since it was made.
//!
//! A request *advances* the generation after it has changed the tables; the number it gets is the request's own. A CPU that
//! has caught up with generation g holds nothing that was taken out of the tables before the advance that produced g. Both
//! numbers only grow, so one comparison tells a CPU whether it missed anything. 64 bits do not wrap: at a billion requests a
//! second they last for 584 years.

use core::fmt;

use crate::sync::{AtomicU64, Ordering, constructor};

/// The number of a request, and the age of what a CPU may still hold. 0 stands before every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// Before any request.
    pub const ZERO: Self = Generation(0);

    /// The generation with this number.
    pub const fn new(number: u64) -> Self {
        Generation(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The generation right after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Generation(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The generation that an address space has reached.
#[derive(Debug)]
pub(crate) struct AtomicGeneration(AtomicU64);

impl AtomicGeneration {
    constructor! {
        pub(crate) fn new() -> Self {
            AtomicGeneration(AtomicU64::new(0))
        }
    }

    /// Starts a new generation and returns it.
    ///
    /// It must be one atomic step: were it a load and a store, two initiators could get the same number, and a CPU that
    /// has served the one would take the other for served as well. Release publishes the table changes before it to whoever
    /// reads the number, or a later one, with acquire. It is *not* the full fence that has to follow before the sets are read, which
    /// also makes it an acquire.
    #[inline]
    pub(crate) fn advance(&self) -> Generation {
        Generation(self.0.fetch_add(1, Ordering::Release) + 1)
    }

    /// The generation reached. Table changes that were made before it are visible after this.
    #[inline]
    pub(crate) fn load(&self) -> Generation {
        Generation(self.0.load(Ordering::Acquire))
    }

    /// `advance` as a load and a store: wrong, and kept so that the models show that they can tell.
    #[cfg(any(loom, shuttle, simulated))]
    pub(crate) fn advance_by_plain_store(&self) -> Generation {
        let next = self.load().next();
        self.0.store(next.number(), Ordering::Release);
        next
    }
}
