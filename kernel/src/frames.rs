//! Physical memory after boot: the frames of `memory`, and what the kernel itself takes from them.
#![allow(unsafe_code)]

use coherence::CpuId;
use memory::Frames;

use crate::arch::layout::{DIRECT_MAP, direct};
use crate::boot;
use crate::cpu;
use crate::sync::RawSpinLock;

/// All frames of the machine.
pub(crate) static FRAMES: Frames<RawSpinLock> = Frames::empty();

/// The running CPU, as `memory` and `coherence` name it.
pub(crate) fn this_cpu() -> CpuId {
    CpuId::new(cpu::index()).expect("a CPU's index is below the capacity")
}

/// Hands the free memory over. Called once, after the final map is loaded.
pub(crate) fn initialise(free: &boot::FreeRanges) {
    // SAFETY: the direct map shows all RAM for ever; `free` leaves out everything that is in use. (Memory below the
    // highest range that is not RAM, or not writable, has metadata but is never handed out.)
    unsafe { FRAMES.initialize(DIRECT_MAP as *mut u8, free.as_slice()) }
}

/// A frame of zeroes for the kernel: its physical address.
pub(crate) fn allocate_zeroed() -> Option<u64> {
    let frame = FRAMES.allocate(this_cpu()).ok()?;
    FRAMES.zero(frame);
    Some(frame.address())
}

/// `1 << order` neighbouring frames for the kernel: their address in the direct map.
pub(crate) fn allocate_block(order: usize) -> Option<*mut u8> {
    let block = FRAMES.allocate_block(order).ok()?;
    Some(direct(block.address()) as *mut u8)
}
