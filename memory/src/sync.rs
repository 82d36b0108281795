//! Where the atomics come from that CPUs and hardware share: `core`, or the explorer of the checkers' build (`simulated`).
//!
//! Only page tables and the reference counts of frames are taken from here. What lies under a lock is ordered by it, and counts
//! that decide nothing need no look. The functions tell the checkers' oracle who owns a frame; elsewhere they are nothing.

#[cfg(not(simulated))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(simulated)]
pub(crate) use explorer::{AtomicU32, AtomicU64, fence};

use crate::frame::FrameNumber;

/// A word that nobody else changes, so that the checkers need not stop before it: of a table that was unhooked, or under a lock that is held.
#[inline]
pub(crate) fn load_unhooked(word: &AtomicU64) -> u64 {
    #[cfg(simulated)]
    return explorer::load_now(word);
    #[cfg(not(simulated))]
    word.load(core::sync::atomic::Ordering::Relaxed)
}

/// Stores a word that nobody else looks at, so that the checkers need not stop before it: of a table that is not hooked in yet, or under a lock that is held.
#[inline]
pub(crate) fn store_unhooked(word: &AtomicU64, value: u64) {
    #[cfg(simulated)]
    word.poke(value);
    #[cfg(not(simulated))]
    word.store(value, core::sync::atomic::Ordering::Relaxed);
}

/// The references of one of a run's many frames. The checkers take such a loop for one step: that a single count is counted right
/// they see elsewhere.
#[inline]
pub(crate) fn load_count(count: &AtomicU32) -> u32 {
    #[cfg(simulated)]
    return count.peek();
    // Acquire, as in `Frames::references`.
    #[cfg(not(simulated))]
    count.load(core::sync::atomic::Ordering::Acquire)
}

/// Sets such references, which nobody else counts.
#[inline]
pub(crate) fn store_count(count: &AtomicU32, value: u32) {
    #[cfg(simulated)]
    count.poke(value);
    #[cfg(not(simulated))]
    count.store(value, core::sync::atomic::Ordering::Relaxed);
}

/// One more such reference.
#[inline]
pub(crate) fn add_to_count(count: &AtomicU32) {
    #[cfg(simulated)]
    count.poke(count.peek() + 1);
    #[cfg(not(simulated))]
    count.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
}

/// The frame has an owner from here on.
#[inline]
pub(crate) fn frame_given(frame: FrameNumber) {
    #[cfg(simulated)]
    explorer::declare(explorer::Declaration::Given(frame.address()));
    #[cfg(not(simulated))]
    let _ = frame;
}

/// The frame has no owner any more.
#[inline]
pub(crate) fn frame_taken(frame: FrameNumber) {
    #[cfg(simulated)]
    explorer::declare(explorer::Declaration::Taken(frame.address()));
    #[cfg(not(simulated))]
    let _ = frame;
}

/// From here on a copy of this frame counts for whoever owned the page.
#[inline]
pub(crate) fn frame_copied(frame: FrameNumber) {
    #[cfg(simulated)]
    explorer::declare(explorer::Declaration::Copied(frame.address()));
    #[cfg(not(simulated))]
    let _ = frame;
}

/// From here on what was read of this frame counts as all that was stored to it.
#[inline]
pub(crate) fn frame_written(frame: FrameNumber) {
    #[cfg(simulated)]
    explorer::declare(explorer::Declaration::Written(frame.address()));
    #[cfg(not(simulated))]
    let _ = frame;
}
