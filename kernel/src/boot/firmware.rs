//! Which CPUs there are: from the firmware's tables (root pointer, root table, interrupt controller table), or from the
//! emulator's configuration port when there are none.
//!
//! The tables are read through the temporary map, which shows the lowest 4 GiB; a table elsewhere is treated as absent. A length that
//! makes no sense ends the walk.
#![allow(unsafe_code)]

use crate::arch::layout::direct;
use crate::arch::registers::cpuid;
use crate::arch::{io_apic, port};
use crate::cpu::MAX_CPUS;

/// The CPUs' interrupt controller identifiers, the boot CPU's first, and the device interrupt controller's address.
pub(super) struct Processors {
    identifiers: [u32; MAX_CPUS],
    count: usize,
    /// Physical address.
    pub(super) io_apic: u64,
}

impl Processors {
    pub(super) fn identifiers(&self) -> &[u32] {
        &self.identifiers[..self.count]
    }

    fn add(&mut self, identifier: u32) {
        if self.count < MAX_CPUS && !self.identifiers().contains(&identifier) {
            self.identifiers[self.count] = identifier;
            self.count += 1;
        }
    }
}

/// Finds the CPUs. `root_pointer` is its physical address, or 0.
pub(super) fn processors(root_pointer: u64) -> Processors {
    let mut found = Processors { identifiers: [0; MAX_CPUS], count: 0, io_apic: io_apic::DEFAULT_BASE };
    found.add(cpuid(1, 0).ebx >> 24);
    match interrupt_controller_table(root_pointer) {
        Some(table) => read_entries(table, &mut found),
        None => (0..configured_count()).for_each(|identifier| found.add(identifier)),
    }
    found
}

/// A physical range that the temporary map shows.
#[derive(Clone, Copy)]
struct Table {
    address: u64,
    length: u64,
}

impl Table {
    /// The table whose header is at `address`.
    fn at(address: u64) -> Option<Self> {
        let header = Self { address, length: 36 };
        if address == 0 || address >> 32 != 0 {
            return None;
        }
        let length = u64::from(header.u32(4));
        (36..1 << 20).contains(&length).then_some(Self { address, length })
    }

    fn byte(self, offset: u64) -> u8 {
        if offset >= self.length || (self.address + offset) >> 32 != 0 {
            return 0;
        }
        // SAFETY: inside the lowest 4 GiB, which the temporary map shows; reading firmware memory has no effect.
        unsafe { (direct(self.address + offset) as *const u8).read_volatile() }
    }

    fn u32(self, offset: u64) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|index| self.byte(offset + index)))
    }

    fn u64(self, offset: u64) -> u64 {
        u64::from(self.u32(offset)) | u64::from(self.u32(offset + 4)) << 32
    }

    fn has_signature(self, signature: &[u8; 4]) -> bool {
        self.u32(0) == u32::from_le_bytes(*signature)
    }
}

fn interrupt_controller_table(root_pointer: u64) -> Option<Table> {
    if root_pointer == 0 || root_pointer >> 32 != 0 {
        return None;
    }
    let pointer = Table { address: root_pointer, length: 36 };
    let wide = pointer.byte(15) >= 2 && pointer.u64(24) != 0;
    let (root, entry_bytes) = if wide { (pointer.u64(24), 8) } else { (u64::from(pointer.u32(16)), 4) };
    let root = Table::at(root)?;
    (36..root.length)
        .step_by(entry_bytes)
        .filter_map(|offset| Table::at(if wide { root.u64(offset) } else { u64::from(root.u32(offset)) }))
        .find(|table| table.has_signature(b"APIC"))
}

fn read_entries(table: Table, found: &mut Processors) {
    let mut offset = 44;
    while offset + 2 <= table.length {
        match table.byte(offset) {
            0 if table.u32(offset + 4) & 1 != 0 => found.add(u32::from(table.byte(offset + 3))),
            1 if table.u32(offset + 8) == 0 => found.io_apic = u64::from(table.u32(offset + 4)),
            9 if table.u32(offset + 8) & 1 != 0 => found.add(table.u32(offset + 4)),
            _ => {}
        }
        let length = u64::from(table.byte(offset + 1));
        if length < 2 {
            return;
        }
        offset += length;
    }
}

/// The number of CPUs that the emulator's configuration port names (key 5); 1 if there is no such port.
fn configured_count() -> u32 {
    const SELECTOR: u16 = 0x510;
    const DATA: u16 = 0x511;
    let read = |key| {
        port::write_u16(SELECTOR, key);
        u32::from(port::read_u8(DATA)) | u32::from(port::read_u8(DATA)) << 8
    };
    // Key 0 is a signature, "QEMU".
    if read(0) != u32::from(u16::from_le_bytes(*b"QE")) {
        return 1;
    }
    read(5).clamp(1, MAX_CPUS as u32)
}
