//! The guest's memory, as this process sees it: one piece, written by the emulated CPUs while we read.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire};

/// First physical address above the hole that boards leave below 4 GiB for devices.
const HIGH_START: u64 = 1 << 32;

/// All RAM of the guest.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    base: *const u8,
    /// Bytes of RAM.
    size: u64,
    /// How many of them lie below the hole; the rest begins at 4 GiB.
    low: u64,
}

// SAFETY: the memory is only read, and only with atomic accesses; it stays mapped as long as the process lives.
unsafe impl Send for GuestMemory {}
// SAFETY: as above.
unsafe impl Sync for GuestMemory {}

impl GuestMemory {
    /// # Safety
    /// `size` bytes from `base` on, which is aligned to a page, stay readable for as long as the process lives. Others change
    /// them only with accesses of at most 64 bits (as emulated CPUs do) or where we do not look.
    pub(crate) unsafe fn new(base: *const u8, size: u64, low: u64) -> Self {
        Self { base, size, low: low.min(size) }
    }

    /// How far into the RAM a physical address lies, if `bytes` from it on are RAM and it is a multiple of `bytes`.
    fn offset(&self, physical: u64, bytes: u64) -> Option<usize> {
        let offset = if physical < HIGH_START { physical } else { physical - HIGH_START + self.low };
        let end = if physical < HIGH_START { self.low } else { self.size };
        let fits = physical.is_multiple_of(bytes) && offset.checked_add(bytes)? <= end;
        if fits { usize::try_from(offset).ok() } else { None }
    }

    /// The physical address of a place in the RAM, which is how QEMU numbers it.
    pub(crate) fn physical(&self, offset: u64) -> Option<u64> {
        match offset {
            offset if offset < self.low => Some(offset),
            offset if offset < self.size => Some(offset - self.low + HIGH_START),
            _ => None,
        }
    }

    /// The place in the RAM that this process sees at an address.
    pub(crate) fn offset_of_host(&self, address: *const u8) -> Option<u64> {
        let offset = address.addr().checked_sub(self.base.addr())? as u64;
        (offset < self.size).then_some(offset)
    }

    /// The 64 bits at a physical address; `None` outside of RAM, or if it is not a multiple of 8.
    pub(crate) fn word(&self, physical: u64) -> Option<u64> {
        let offset = self.offset(physical, 8)?;
        // SAFETY: inside the RAM and aligned, as `offset` checked; `new`'s caller vouched for the rest.
        Some(unsafe { (*self.base.add(offset).cast::<AtomicU64>()).load(Acquire) })
    }

    /// The 32 bits at a physical address.
    pub(crate) fn half(&self, physical: u64) -> Option<u32> {
        let offset = self.offset(physical, 4)?;
        // SAFETY: as in `word`.
        Some(unsafe { (*self.base.add(offset).cast::<AtomicU32>()).load(Acquire) })
    }

    /// The byte at a physical address.
    pub(crate) fn byte(&self, physical: u64) -> Option<u8> {
        let offset = self.offset(physical, 1)?;
        // SAFETY: as in `word`.
        Some(unsafe { (*self.base.add(offset).cast::<AtomicU8>()).load(Acquire) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(words: &'static [AtomicU64; 4]) -> GuestMemory {
        // SAFETY: a static of this size.
        unsafe { GuestMemory::new(words.as_ptr().cast(), 32, 16) }
    }

    #[test]
    fn the_hole_below_4_gib_is_left_out() {
        static WORDS: [AtomicU64; 4] =
            [AtomicU64::new(1), AtomicU64::new(2), AtomicU64::new(3), AtomicU64::new(4 << 32 | 5)];
        let memory = memory(&WORDS);
        assert_eq!([0, 8, 16, 1 << 40].map(|address| memory.word(address)), [Some(1), Some(2), None, None]);
        assert_eq!(memory.word(HIGH_START), Some(3));
        assert_eq!(memory.half(HIGH_START + 12), Some(4));
        assert_eq!(memory.byte(HIGH_START + 8), Some(5));
        assert_eq!(memory.word(HIGH_START + 16), None);
        assert_eq!(memory.word(4), None, "not aligned");
        assert_eq!([8, 16, 32].map(|offset| memory.physical(offset)), [Some(8), Some(HIGH_START), None]);
        assert_eq!(memory.offset_of_host((&raw const WORDS[3]).cast()), Some(24));
        assert_eq!(memory.offset_of_host(std::ptr::null()), None);
    }
}
