//! The pages of disks that are in memory: writing them back, and taking them back when memory grows short.
//!
//! Everybody who is about to bring in pages of a disk keeps some room first; a page fault that finds no frame makes room here before anybody is
//! killed (`out_of_memory`). Clean pages go first; if there are none, dirty ones are written, and are clean then. One caller
//! at a time makes room; the others wait behind it and find it made.
//!
//! A kernel task writes back what has been stored since the last time, so that a page is at most that old when the power goes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{FRAMES, MemoryObject};
use crate::sync::{Mutex, SpinLock, WaitQueue};
use crate::{task, time};

/// Room is made when less than one frame in this many is free, and until one in so many is. More than the room for which processes
/// are killed.
const LOW_SHARE: usize = 16;
const ENOUGH_SHARE: usize = 12;
/// How often dirty pages are written back, in nanoseconds.
const INTERVAL: u64 = 5_000_000_000;

/// Pages that were taken back so far.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static CACHES: SpinLock<Vec<Arc<MemoryObject>>> = SpinLock::new(Vec::new());
static TURN: Mutex<()> = Mutex::new(());

/// Has an object's pages written back from time to time, and taken back when memory is short.
pub(crate) fn register(object: Arc<MemoryObject>) {
    CACHES.lock().push(object);
}

/// Begins to write back in the background. Called once, when there is something to write.
pub(crate) fn start_background() {
    task::spawn_kernel("writeback", || {
        let pause = WaitQueue::new();
        loop {
            let deadline = time::now() + INTERVAL;
            // Nobody wakes this queue: it is a sleep.
            let _ = pause.wait_interruptible::<()>(Some(deadline), || None);
            write_back_all();
        }
    });
}

fn caches() -> Vec<Arc<MemoryObject>> {
    CACHES.lock().clone()
}

/// Pages of disks that are in memory.
pub(crate) fn resident_pages() -> u64 {
    caches().iter().map(|cache| cache.resident_pages() as u64).sum()
}

/// Pages of disks that were taken back so far.
pub(crate) fn taken_pages() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Writes back all that was stored before the call.
pub(crate) fn write_back_all() {
    for cache in caches() {
        cache.write_back(0..u64::MAX);
    }
}

/// Makes room if there is little. May sleep.
pub(crate) fn keep_room() {
    let statistics = FRAMES.statistics();
    if statistics.free < statistics.total / LOW_SHARE {
        make_room();
    }
}

/// Takes pages back until there is enough room; says whether any went. May sleep.
pub(crate) fn make_room() -> bool {
    let caches = caches();
    if caches.is_empty() {
        return false;
    }
    let _turn = TURN.lock();
    let missing = || {
        let statistics = FRAMES.statistics();
        (statistics.total / ENOUGH_SHARE).saturating_sub(statistics.free)
    };
    // Somebody else may have made it while we waited.
    let mut has_gone = missing() == 0;
    for is_written in [false, true] {
        if is_written && missing() > 0 {
            caches.iter().for_each(|cache| cache.write_back(0..u64::MAX));
        }
        for cache in &caches {
            let wanted = missing();
            let gone = if wanted > 0 { cache.shrink(wanted) } else { 0 };
            TAKEN.fetch_add(gone as u64, Ordering::Relaxed);
            has_gone |= gone > 0;
        }
    }
    has_gone
}
