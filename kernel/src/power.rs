//! Ending the machine.
//!
//! The emulator's exit device turns a written value into its own exit status, `value * 2 + 1`. A machine without it is asked
//! to reset, which ends the emulator too (`-no-reboot`).

use crate::arch::{port, registers};

pub(crate) use protocol::off::{ORDERLY, PANIC};

const EXIT_PORT: u16 = protocol::port::OFF;

/// Ends the machine with a value for the host, one of `protocol::off`.
pub(crate) fn exit(value: u32) -> ! {
    port::write_u32(EXIT_PORT, value);
    port::write_u8(0x64, 0xfe); // keyboard controller: pulse the reset line
    registers::halt_forever()
}
