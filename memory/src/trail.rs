//! Where somebody who reads and writes an object by calls was last.
//!
//! Who reads a page in many small pieces, one behind the other, uses it once. So each opening remembers the page that it was in.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The last page of an opening.
#[derive(Debug)]
pub struct Trail(AtomicU64);

impl Trail {
    /// One that has not been anywhere.
    pub const fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Goes to a page; says whether that is another than the last. (Two threads that share an opening may disturb each other. A page then
    /// counts as used more often.)
    pub(crate) fn goes_on_to(&self, page: u64) -> bool {
        self.0.swap(page, Relaxed) != page
    }
}

impl Default for Trail {
    fn default() -> Self {
        Self::new()
    }
}
