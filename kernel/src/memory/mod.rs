//! Where the kernel meets the `memory` crate: its surroundings, page faults, access to user memory, and what happens
//! when memory runs out.

pub(crate) mod cache;
mod environment;
mod out_of_memory;
pub(crate) mod room;
pub(crate) mod swap;
pub(crate) mod user;

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use ::memory::{Access, Fault, Identity, OutOfMemory};

use crate::cpu::{Aligned, MAX_CPUS, PerCpu};
use crate::process;
use crate::task;

pub(crate) use crate::frames::FRAMES;
pub(crate) use environment::Kernel;

/// An address space of this kernel.
pub(crate) type AddressSpace = ::memory::AddressSpace<Kernel>;
/// An object that can be mapped.
pub(crate) type Backing = dyn ::memory::Backing<Kernel>;
/// What to map.
pub(crate) type MapRequest = ::memory::MapRequest<Kernel>;
/// An object made of memory.
pub(crate) type MemoryObject = ::memory::MemoryObject<Kernel>;

/// The error code of a page fault: an entry was present, a store, an instruction fetch.
const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const FETCH: u64 = 16;

/// Page faults of user mode, by CPU.
static FAULTS: PerCpu<AtomicU64> = PerCpu::new([const { Aligned(AtomicU64::new(0)) }; MAX_CPUS]);

/// A page fault in user mode, with interrupts on. Either the access can be tried again afterwards, or the program has
/// a signal.
pub(crate) fn page_fault(address: u64, error: u64) {
    FAULTS.here().fetch_add(1, Ordering::Relaxed);
    let access = Access { write: error & WRITE != 0, execute: error & FETCH != 0 };
    let Some(space) = current_space() else { return process::fault(address, error, Fault::NotMapped) };
    process::current().process().count_fault();
    loop {
        match space.handle_fault(address, access, error & PRESENT != 0) {
            Ok(()) => return room::keep_if_watched(),
            Err(Fault::OutOfMemory) => {
                if out_of_memory::relieve().is_err() {
                    // The program ends on its way back to user mode.
                    return;
                }
            }
            Err(reason) => return process::fault(address, error, reason),
        }
    }
}

/// Page faults of user mode so far.
pub(crate) fn fault_count() -> u64 {
    (0..MAX_CPUS).map(|cpu| FAULTS.of(cpu).load(Ordering::Relaxed)).sum()
}

/// The address space of the running program; `None` in a kernel task.
pub(crate) fn current_space() -> Option<Arc<AddressSpace>> {
    task::current().space()
}

/// An address space with nothing in it but the kernel.
pub(crate) fn new_space() -> Result<Arc<AddressSpace>, OutOfMemory> {
    AddressSpace::new(&Kernel)
}

/// So many bytes of zeroes that nobody else shares until the mapping is inherited: shared anonymous memory, and what `/dev/zero` maps.
pub(crate) fn zero_backing(size: u64) -> Arc<Backing> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Device 0, minor 1: where Linux keeps its unnamed shared memory.
    let identity = Identity { device: 1, inode: NEXT.fetch_add(1, Ordering::Relaxed) };
    let name = String::from("/dev/zero (deleted)");
    Arc::new(MemoryObject::new(&Kernel, identity, name, size))
}

/// A counted reference to a frame of this machine.
pub(crate) type Frame = ::memory::FrameRef<Kernel>;

/// How much memory there is, in pages.
pub(crate) struct Usage {
    pub(crate) total_pages: u64,
    pub(crate) free_pages: u64,
}

/// How many pages are free, or could be: those of disks can be had again.
pub(crate) fn available() -> u64 {
    (FRAMES.statistics().free + FRAMES.page_counts().all()) as u64
}

/// How full memory is.
pub(crate) fn usage() -> Usage {
    let statistics = FRAMES.statistics();
    Usage { total_pages: statistics.total as u64, free_pages: statistics.free as u64 }
}
