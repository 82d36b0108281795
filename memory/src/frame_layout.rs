//! Where the metadata of frames lie, for an observer that reads the machine's memory from outside: an emulator, a debugger.
//!
//! The observer needs three facts of a frame: whether anybody owns it; whether it was taken out of entries whose flush waits; and, if it holds a
//! page table, whether somebody holds that table's lock and so may be changing its entries.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use lock_api::RawMutex;

use crate::frame::FrameNumber;
use crate::frames::{Frames, Metadata};

/// Where to find what is known about frames. Sizes and offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// Address of frame 0's metadata.
    pub start: u64,
    /// How many frames have metadata.
    pub count: u64,
    /// From one frame's metadata to the next one's.
    pub stride: u64,
    /// In a frame's metadata: the number of references, 32 bits.
    pub references: u64,
    /// In a frame's metadata: the raw lock of the table in it.
    pub lock: u64,
    /// In a frame's metadata: how many entries of it were taken out whose flush may still wait, 32 bits.
    pub waiting: u64,
}

impl<L: RawMutex> Frames<L> {
    /// Where the metadata lie. To be called after [`Frames::initialize`].
    #[allow(unsafe_code)]
    pub fn layout(&self) -> FrameLayout {
        let first = self.metadata(FrameNumber(0));
        // SAFETY: only the lock's address is taken; nobody locks or unlocks through this reference.
        let lock = core::ptr::from_ref(unsafe { first.table.raw() });
        FrameLayout {
            start: core::ptr::from_ref(first).addr() as u64,
            count: self.limit.load(Relaxed) as u64,
            stride: size_of::<Metadata<L>>() as u64,
            references: offset_of!(Metadata<L>, references) as u64,
            waiting: offset_of!(Metadata<L>, waiting) as u64,
            lock: (lock.addr() - core::ptr::from_ref(first).addr()) as u64,
        }
    }
}
