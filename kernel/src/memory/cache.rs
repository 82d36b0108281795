//! The pages of disks that are in memory, and writing them back. (`room` takes them back.)
//!
//! A kernel task writes back what has been stored since the last time, so that a page is at most that old when the power goes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::MemoryObject;
use crate::sync::{SpinLock, WaitQueue};
use crate::{task, time};

/// How often dirty pages are written back, in nanoseconds.
const INTERVAL: u64 = 5_000_000_000;

/// How often a page fault had to wait for a page of a disk.
static WAITS: AtomicU64 = AtomicU64::new(0);
static CACHES: SpinLock<Vec<Arc<MemoryObject>>> = SpinLock::new(Vec::new());

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

pub(super) fn caches() -> Vec<Arc<MemoryObject>> {
    CACHES.lock().clone()
}

/// Writes back all that was stored before the call.
pub(crate) fn write_back_all() {
    for cache in caches() {
        cache.write_back(0..u64::MAX);
    }
}

/// Pages that have been stored to and not been written, and pages that are being written. Looks at all entries that map them.
pub(crate) fn dirty_and_leaving_pages() -> (usize, usize) {
    let caches = caches();
    (caches.iter().map(|cache| cache.dirty_pages()).sum(), caches.iter().map(|cache| cache.leaving_pages()).sum())
}

/// A page fault needs a page that is not in memory.
pub(crate) fn note_wait() {
    WAITS.fetch_add(1, Ordering::Relaxed);
}

/// How often that was so.
pub(crate) fn waits() -> u64 {
    WAITS.load(Ordering::Relaxed)
}
