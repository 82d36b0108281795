//! Where the pages of an object come from and go to: a disk.
//!
//! A store carries neighbouring pages between frames and itself, and says when each transfer has ended. It is told to begin with no lock
//! held, and may sleep; what is to be done when a transfer has ended is done by whoever looks next (`stored`), so a store has
//! nobody to call back.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Release};

use alloc::sync::Arc;

use crate::environment::Environment;
use crate::frame::FrameRef;

/// Which way pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the store into memory.
    In,
    /// Out to the store.
    Out,
}

/// The store could not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFailed;

/// Where a transfer has got to.
#[derive(Debug)]
pub struct Transfer(AtomicU8);

const PENDING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

impl Transfer {
    /// One that has not ended.
    pub fn pending() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(PENDING)))
    }

    /// Says that it has ended, and how. The store calls this once, and has let go of the frames by then: who waits for a transfer may look who else
    /// has them.
    pub fn end(&self, outcome: Result<(), StoreFailed>) {
        // Release: what was carried comes before the word that it was.
        self.0.store(if outcome.is_ok() { DONE } else { FAILED }, Release);
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Result<(), StoreFailed>> {
        // Acquire: pairs with `end`. What is done with the pages comes after what was carried into them.
        match self.0.load(Acquire) {
            PENDING => None,
            DONE => Some(Ok(())),
            _ => Some(Err(StoreFailed)),
        }
    }
}

/// A disk, or what stands for one.
pub trait Store<E: Environment>: Send + Sync {
    /// How many pages one transfer may carry, at least 1.
    fn most_pages(&self) -> u64;

    /// Begins to carry neighbouring pages, from page `first` on, one to a frame. Of a last page that the store does not have whole
    /// only its part is carried. Keeps the frames until they have been carried, and lets go of them before it says that the transfer has ended. May sleep.
    fn begin(&self, direction: Direction, first: u64, frames: Vec<FrameRef<E>>, transfer: &Arc<Transfer>);

    /// Sleeps until a transfer that was begun here has ended.
    ///
    /// # Errors
    /// When the pages were not carried, or not all of them.
    fn wait(&self, transfer: &Transfer) -> Result<(), StoreFailed>;

    /// Makes what was carried out last beyond a loss of power. May sleep.
    ///
    /// # Errors
    /// When that could not be done.
    fn make_lasting(&self) -> Result<(), StoreFailed>;
}
