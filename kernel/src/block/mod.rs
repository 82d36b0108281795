//! Block devices: virtio disks, on the PCI bus or, on boards without one, at the addresses that the command line names.
//!
//! Rings and registers are `virtio-drivers`' business (`docs/design/0020-page-cache-and-disks.md` says why, and what of it is not used);
//! `disk` is what the kernel does with them. `pci` and `slot` find devices, `access` lends memory to them.
//!
//! Disks are numbered as they are found, which is the order of the command line that made them. They are found once, at boot,
//! and stay.

mod access;
mod disk;
mod pci;
mod slot;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use memory::Direction;
use virtio_drivers::transport::SomeTransport;

use crate::arch::io_apic;
use crate::cpu;
use crate::interrupt::DISK;
use crate::sync::Once;

pub(crate) use disk::{Disk, SECTOR};

/// Bytes that have come from all disks, and gone to them.
static CARRIED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static DISKS: Once<Box<[Arc<Disk>]>> = Once::new();

/// A device that was found, and its interrupt line.
struct Found {
    transport: SomeTransport<'static>,
    line: u32,
}

/// Finds the machine's disks and has their interrupts come to the boot CPU. A device that does not answer as it should is left out.
pub(crate) fn initialise(io_apic_base: u64) {
    let mut disks = Vec::new();
    for Found { transport, line } in pci::find().into_iter().chain(slot::find()) {
        match Disk::start(transport) {
            Ok(disk) => {
                disks.push(Arc::new(disk));
                io_apic::route_held(io_apic_base, line, DISK, cpu::apic_name(0).identifier);
            }
            Err(error) => log::error!("a disk is left out: {error}"),
        }
    }
    DISKS.set(disks.into_boxed_slice());
}

/// All disks, in their order.
pub(crate) fn disks() -> &'static [Arc<Disk>] {
    DISKS.get().map_or(&[], |disks| disks)
}

/// The interrupt of all disks. They may share a line, so each is asked.
pub(crate) fn on_interrupt() {
    for disk in disks() {
        disk.on_interrupt();
    }
}

fn note_carried(direction: Direction, bytes: u64) {
    CARRIED[usize::from(direction == Direction::Out)].fetch_add(bytes, Ordering::Relaxed);
}

/// How many bytes have come from all disks, and gone to them.
pub(crate) fn carried() -> (u64, u64) {
    let [came, went] = [0, 1].map(|direction: usize| CARRIED[direction].load(Ordering::Relaxed));
    (came, went)
}
