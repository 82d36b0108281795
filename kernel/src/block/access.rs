//! What devices and the kernel see of each other: the kernel's memory by its physical address, the device's registers through
//! the direct map.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use memory::{FrameNumber, PAGE_SIZE};
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

use crate::arch::layout::{DIRECT_MAP, STACKS, direct};
use crate::boot::map;
use crate::frames::{self, FRAMES};

/// The way to devices. They see physical memory as it is, so that lending them memory takes no more than its address.
pub(super) struct Access;

/// The order of a block that holds so many pages.
fn order(pages: usize) -> usize {
    pages.next_power_of_two().ilog2() as usize
}

// SAFETY: memory comes from the frames and is nobody else's until it is given back; registers are mapped before they are
// handed out. Each method says the rest.
unsafe impl Hal for Access {
    fn dma_alloc(pages: usize, _direction: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let Some(block) = frames::allocate_block(order(pages)).and_then(NonNull::new) else {
            // An address of 0 is how failure is told.
            return (0, NonNull::dangling());
        };
        // SAFETY: a block of at least so many pages, which is ours.
        unsafe { block.write_bytes(0, pages * PAGE_SIZE as usize) };
        (block.as_ptr() as u64 - DIRECT_MAP, block)
    }

    unsafe fn dma_dealloc(address: PhysAddr, _block: NonNull<u8>, pages: usize) -> i32 {
        match FrameNumber::containing(address) {
            Some(frame) => {
                FRAMES.release_block(frame, order(pages));
                0
            }
            None => -1,
        }
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, size: usize) -> NonNull<u8> {
        map_registers(address, size as u64).expect("there is memory for the tables of a device's registers")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _direction: BufferDirection) -> PhysAddr {
        let address = buffer.cast::<u8>().as_ptr() as u64;
        // The heap and all frames lie there. A stack does not, and its pages need not be neighbours.
        assert!((DIRECT_MAP..STACKS).contains(&address), "memory outside of the direct map was lent to a device");
        address - DIRECT_MAP
    }

    unsafe fn unshare(_address: PhysAddr, _buffer: NonNull<[u8]>, _direction: BufferDirection) {}
}

/// Maps a device's registers. `None` if memory is short.
pub(super) fn map_registers(address: u64, bytes: u64) -> Option<NonNull<u8>> {
    map::add_device(address..address + bytes)?;
    NonNull::new(direct(address) as *mut u8)
}
