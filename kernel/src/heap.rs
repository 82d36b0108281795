//! The kernel's heap: an allocator library over blocks of frames, which it asks for when it runs out and keeps.
//!
//! Allocation is for task code; interrupt handlers may free at most. The lock keeps interrupts off, so that both can use it.
#![allow(unsafe_code)]

use core::alloc::Layout;

use memory::{MAX_ORDER, PAGE_SIZE};
use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

use crate::frames;
use crate::sync::RawInterruptLock;

/// Frames in the smallest block that the heap grows by, as a power of two: 64 KiB.
const GROWTH_ORDER: usize = 4;
/// Bytes that the allocator needs for itself in a new block.
const OVERHEAD: usize = 128;

/// Grows the heap from the machine's frames.
#[derive(Debug)]
struct FrameSource;

// SAFETY: takes memory from the frames only, which do not use the heap.
unsafe impl Source for FrameSource {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let bytes = layout.size() + layout.align() + OVERHEAD;
        let order = bytes.div_ceil(PAGE_SIZE as usize).next_power_of_two().ilog2() as usize;
        let order = order.max(GROWTH_ORDER);
        if order > MAX_ORDER {
            return Err(());
        }
        let block = frames::allocate_block(order).ok_or(())?;
        // SAFETY: the block is ours for good, and nothing else refers to it.
        unsafe { talc.claim(block, (PAGE_SIZE as usize) << order) }.map(drop).ok_or(())
    }
}

#[global_allocator]
static HEAP: TalcLock<RawInterruptLock, FrameSource> = TalcLock::new(FrameSource);

/// Bytes in use, and bytes taken from the frames.
pub(crate) fn statistics() -> (usize, usize) {
    let heap = HEAP.lock();
    let counters = heap.counters();
    (counters.allocated_bytes, counters.claimed_bytes)
}
