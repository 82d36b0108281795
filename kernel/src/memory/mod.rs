//! Where the kernel meets the `memory` crate: its surroundings, and page faults.

mod environment;

use crate::arch::TrapFrame;
use crate::task;

pub(crate) use environment::Machine;

/// An address space of this kernel.
pub(crate) type AddressSpace = ::memory::AddressSpace<Machine>;

/// A page fault in user mode, with interrupts on.
pub(crate) fn page_fault(frame: &mut TrapFrame, address: u64, error: u64) {
    let access = ::memory::Access { write: error & 2 != 0, execute: error & 16 != 0 };
    let resolved = task::current().space().is_some_and(|space| space.handle_fault(address, access, error & 1 != 0).is_ok());
    if !resolved {
        crate::process::exception(frame, 14);
    }
}
