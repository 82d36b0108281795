//! Reclaim: somebody who is none of the processes takes a page from all of them, with one flush.

use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use coherence::Cause;

use super::kernel::{FRAME, MACHINE, OWNERS, PAGE, PRESENT, Process, translation};

/// Takes a page out of every process. When this returns, the frames are free.
pub(crate) fn take_back(processes: &[Arc<Process>], page: u64) {
    let mut batch = MACHINE.batch(Cause::Reclaim, Vec::new());
    let mut all_recorded = Vec::new();
    for process in processes {
        let _guard = process.lock();
        let old = process.table[page as usize].swap(0, AcqRel);
        let recorded = batch.change(&process.space, page * PAGE, PAGE, &translation(old), &translation(0));
        all_recorded.extend(recorded.map(|recorded| (process, recorded)));
        if old & PRESENT != 0 {
            batch.list_mut().push(old >> FRAME);
        }
    }
    let flushed = batch.finish();
    for (process, recorded) in all_recorded {
        flushed.settles(&process.space, recorded);
    }
    for frame in flushed.into_inner() {
        OWNERS[frame as usize].store(0, Release);
    }
}
