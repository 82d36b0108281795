//! Input and output ports: the only road to the debug console, the serial line, the clock chips and the power switch.
#![allow(unsafe_code)]

use core::arch::asm;

/// Writes one byte.
pub(crate) fn write_u8(port: u16, value: u8) {
    // SAFETY: port output cannot touch memory that Rust knows of; devices that master the bus are never set up.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes four bytes.
pub(crate) fn write_u32(port: u16, value: u32) {
    // SAFETY: as in `write_u8`.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes two bytes.
pub(crate) fn write_u16(port: u16, value: u16) {
    // SAFETY: as in `write_u8`.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads four bytes.
pub(crate) fn read_u32(port: u16) -> u32 {
    let value: u32;
    // SAFETY: as in `write_u8`.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Reads one byte.
pub(crate) fn read_u8(port: u16) -> u8 {
    let value: u8;
    // SAFETY: as in `write_u8`.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes all bytes to one port, in order.
pub(crate) fn write_bytes(port: u16, bytes: &[u8]) {
    // SAFETY: the instruction reads exactly `bytes` and advances only its two registers; the direction flag is clear in Rust code.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _,
            options(readonly, nostack, preserves_flags));
    }
}
