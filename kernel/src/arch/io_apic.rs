//! The controller that brings device interrupts to CPUs. The kernel uses the serial receiver's line of it, and those of disks.
#![allow(unsafe_code)]

use super::layout::direct;
use super::port;

/// Physical address on every machine type we run on when the tables do not name another.
pub(crate) const DEFAULT_BASE: u64 = 0xfec0_0000;

fn write(base: u64, register: u32, value: u32) {
    // SAFETY: `base` is the controller's page, mapped uncached by the boot map: index register, then data register.
    unsafe {
        (direct(base) as *mut u32).write_volatile(register);
        (direct(base + 0x10) as *mut u32).write_volatile(value);
    }
}

/// Brings an edge-triggered line to one CPU as `vector`.
pub(crate) fn route(base: u64, line: u32, vector: u8, apic_identifier: u32) {
    write(base, 0x11 + 2 * line, apic_identifier << 24);
    write(base, 0x10 + 2 * line, u32::from(vector));
}

/// As [`route`], for a line that a device holds until it has been answered, and that several devices may share.
pub(crate) fn route_held(base: u64, line: u32, vector: u8, apic_identifier: u32) {
    const LEVEL_TRIGGERED: u32 = 1 << 15;
    write(base, 0x11 + 2 * line, apic_identifier << 24);
    write(base, 0x10 + 2 * line, u32::from(vector) | LEVEL_TRIGGERED);
}

/// Masks every line of the two old controllers: firmware leaves the timer on a vector that belongs to an exception.
pub(crate) fn mask_legacy_controllers() {
    port::write_u8(0x21, 0xff);
    port::write_u8(0xa1, 0xff);
}
