//! Ways to break this crate on purpose, so that the checkers show that they would notice.
//!
//! A mistake is chosen in the checkers' build only (`--cfg simulated`). In every other one the question "is it made?" is the
//! constant `false`.

/// One way to get it wrong. Each is a mistake that a kernel has made or could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(simulated), allow(unreachable_pub, dead_code, reason = "asked about, but never chosen"))]
pub enum Mistake {
    /// A copied page's new frame is mapped before the flush of the old one.
    CopyMappedBeforeFlush,
    /// Frames go back to the allocator before the flush.
    FramesFreedBeforeFlush,
    /// Page tables go back to the allocator before the flush.
    TablesFreedBeforeFlush,
    /// That page tables are freed is not said to `coherence`.
    TablesNotCalledFreed,
    /// Dropping pages flushes after the table's lock is released.
    DropFlushedAfterUnlock,
    /// `fork` flushes after the area lock is released.
    ForkFlushedAfterUnlock,
    /// The first store to a page of zeroes flushes nothing.
    ZeroesNotFlushed,
    /// `mremap` flushes after the tables' locks are released.
    MoveFlushedAfterUnlock,
    /// `mremap` flushes anonymous pages only once, at its end.
    MoveFlushedAtEnd,
}

#[cfg(simulated)]
mod chosen {
    extern crate std;
    use core::cell::Cell;

    use super::Mistake;

    std::thread_local! {
        static CHOSEN: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    /// Makes this mistake, or none, from here on on this thread.
    pub fn make_mistake(mistake: Option<Mistake>) {
        CHOSEN.set(mistake);
    }

    pub(crate) fn is_made(mistake: Mistake) -> bool {
        CHOSEN.get() == Some(mistake)
    }
}

#[cfg(simulated)]
pub use chosen::make_mistake;

/// Whether a mistake is made on purpose.
pub(crate) fn is_made(mistake: Mistake) -> bool {
    #[cfg(simulated)]
    return chosen::is_made(mistake);
    #[cfg(not(simulated))]
    {
        let _ = mistake;
        false
    }
}
