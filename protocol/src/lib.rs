//! What the kernel and its host agree on: through which ports they speak, which orders are packed into the initramfs, and what
//! the kernel reports at the end. Both ends use these definitions.
//!
//! The guest has one debug port for each stream it writes, so that nothing has to be taken apart again. It writes its report
//! before it switches the machine off.
//!
//! With the feature `check`: what the checkers' programs hand to the command that starts them.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(feature = "check")]
pub mod check;
#[cfg(feature = "check")]
pub mod mutants;
pub mod report;
pub mod sanitizer;

/// With these words Linux's first program begins its log: Linux has booted.
pub const LINUX_FIRST_WORDS: &str = "linux-init: ticks_at_start=";

/// Debug ports: each byte written there joins that stream at the host. (0x402 is SeaBIOS's own.)
pub mod port {
    /// The kernel's log.
    pub const LOG: u16 = 0x400;
    /// The program's standard output.
    pub const OUTPUT: u16 = 0x408;
    /// The program's standard error.
    pub const ERRORS: u16 = 0x404;
    /// The report, as JSON.
    pub const REPORT: u16 = 0x406;
    /// The first serial port: the program's standard input, see [`crate::input`].
    pub const INPUT: u16 = 0x3f8;
    /// A write of `v` here switches the machine off; the emulator ends with status `2v + 1`.
    pub const OFF: u16 = 0xf4;
}

/// What is written to [`port::OFF`]. QEMU ends with twice as much and one; with 0 it would look like its own failures, which are status 1.
pub mod off {
    /// The report was written.
    pub const ORDERLY: u32 = 1;
    /// The kernel panicked; its log says why.
    pub const PANIC: u32 = 2;
}

/// The program's standard input on the serial line.
///
/// The host sends nothing until the guest has written [`READY`] there: a byte that arrived before the guest had set the port
/// up would be lost. Then it sends the input byte by byte; [`ESCAPE`] is sent twice, and [`ESCAPE`] followed by [`END`]
/// is the end of input.
pub mod input {
    /// From the guest: the port is set up (XON).
    pub const READY: u8 = 0x11;
    /// Says that the next byte has a meaning of its own (DLE).
    pub const ESCAPE: u8 = 0x10;
    /// After [`ESCAPE`]: no input follows.
    pub const END: u8 = b'E';
}

/// Files of the initramfs that tell the kernel what to run.
pub mod orders {
    /// The program's arguments, each ended by NUL; the first is the path of the program.
    pub const ARGUMENTS: &str = "/.ceasefire/arguments";
    /// Its environment, each setting ended by NUL.
    pub const ENVIRONMENT: &str = "/.ceasefire/environment";
    /// Its working directory.
    pub const DIRECTORY: &str = "/.ceasefire/directory";
    /// If present, its whole standard input; the serial line is not used then (deterministic runs).
    pub const INPUT: &str = "/.ceasefire/input";
    /// If present, Linux's first program counts flushes of translations by reason (rows `linux.flush` of the report). Our kernel
    /// counts them always, and never looks at this.
    pub const TRACE: &str = "/.ceasefire/trace";
    /// If present, the guest has disks, and Linux's first program waits for them before the program starts. Their number, in decimal.
    pub const DISKS: &str = "/.ceasefire/disks";
    /// With disks: the paths of modules that Linux's first program loads, in this order, each ended by NUL.
    pub const MODULES: &str = "/.ceasefire/modules";
}
