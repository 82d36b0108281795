//! What the `memory` crate needs from this kernel.

use core::sync::atomic::{AtomicU64, Ordering};

use coherence::{Coherence, CpuId};
use memory::{Environment, Frames, Swap, Waiting};

use super::swap::SWAP;
use crate::boot::map;
use crate::frames::{self, FRAMES};
use crate::interrupt::shootdown::{self, COHERENCE};
use crate::sync::{RawRwLock, RawSpinLock};
use crate::task;

/// This kernel, as `memory` sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel;

/// Pages that were taken out of all entries, and whose flush waits.
static WAITING: Waiting<Kernel> = Waiting::new();

impl Environment for Kernel {
    type Platform = shootdown::Machine;
    type AreaLock = RawRwLock;
    type TableLock = RawSpinLock;
    type Monitor = crate::files::UserfaultContext;

    fn coherence(&self) -> &Coherence<shootdown::Machine> {
        &COHERENCE
    }

    fn frames(&self) -> &Frames<RawSpinLock> {
        &FRAMES
    }

    fn swap(&self) -> &Swap<Self> {
        &SWAP
    }

    fn waiting(&self) -> &Waiting<Self> {
        &WAITING
    }

    fn fill_kernel_half(&self, upper_half: &[AtomicU64]) {
        for (index, entry) in upper_half.iter().enumerate() {
            entry.store(map::root_entry(256 + index), Ordering::Relaxed);
        }
    }

    fn current_cpu(&self) -> CpuId {
        frames::this_cpu()
    }

    fn current_thread(&self) -> u64 {
        task::current().thread().map_or(0, |thread| u64::from(thread.id()))
    }

    fn yield_if_needed(&self) {
        task::yield_if_needed();
    }
}
