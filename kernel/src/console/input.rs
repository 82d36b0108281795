//! The program's standard input: bytes that arrive on the first serial port.
//!
//! `protocol::input` says how the end of input is told. The receiver interrupt moves bytes
//! into a ring; readers sleep until there are some. When the ring is full the rest stays in the port, whose emulation keeps
//! the host's stream back, until a reader has made room and polls it.

use protocol::input::{END, ESCAPE, READY};

use crate::arch::{io_apic, port};
use crate::cpu;
use crate::interrupt::SERIAL;
use crate::sync::{InterruptLock, WaitQueue};

const PORT: u16 = protocol::port::INPUT;
const LINE: u32 = 4;
const CAPACITY: usize = 4096;

struct Ring {
    bytes: [u8; CAPACITY],
    first: usize,
    count: usize,
    escaped: bool,
    ended: bool,
}

static RING: InterruptLock<Ring> =
    InterruptLock::new(Ring { bytes: [0; CAPACITY], first: 0, count: 0, escaped: false, ended: false });
/// Readers wait here.
pub(crate) static ARRIVED: WaitQueue = WaitQueue::new();

impl Ring {
    fn push(&mut self, byte: u8) {
        if !self.escaped && byte == ESCAPE {
            self.escaped = true;
            return;
        }
        if core::mem::take(&mut self.escaped) && byte == END {
            self.ended = true;
            return;
        }
        self.bytes[(self.first + self.count) % CAPACITY] = byte;
        self.count += 1;
    }

    /// Moves what the port has into the ring, as far as there is room.
    fn drain_port(&mut self) {
        while self.count < CAPACITY && port::read_u8(PORT + 5) & 1 != 0 {
            let byte = port::read_u8(PORT);
            self.push(byte);
        }
    }

    fn pop(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.count);
        for slot in &mut into[..count] {
            *slot = self.bytes[self.first];
            self.first = (self.first + 1) % CAPACITY;
        }
        self.count -= count;
        count
    }
}

/// Sets the port up and routes its interrupt to the boot CPU. A machine without the port never delivers input.
pub(crate) fn initialise(io_apic_base: u64) {
    port::write_u8(PORT + 1, 0);
    port::write_u8(PORT + 3, 0x03); // 8 bits, no parity, one stop bit
    port::write_u8(PORT + 2, 0x01); // receive queue on
    port::write_u8(PORT + 4, 0x0b); // interrupt line on
    if port::read_u8(PORT + 5) == 0xff {
        RING.lock().ended = true;
        return;
    }
    io_apic::route(io_apic_base, LINE, SERIAL, cpu::apic_name(0).identifier);
    port::write_u8(PORT + 1, 0x01); // interrupt when data is there
    port::write_u8(PORT, READY);
}

/// The receiver's interrupt.
pub(crate) fn on_interrupt() {
    RING.lock().drain_port();
    ARRIVED.wake_all();
    crate::files::input_arrived();
}

/// Takes what has arrived. `Some(0)` is the end of input; `None` means nothing yet (wait on `ARRIVED`).
pub(crate) fn try_read(into: &mut [u8]) -> Option<usize> {
    let mut ring = RING.lock();
    let count = ring.pop(into);
    ring.drain_port();
    (count > 0 || ring.ended || into.is_empty()).then_some(count)
}

/// Whether a read would not block.
pub(crate) fn is_ready() -> bool {
    let ring = RING.lock();
    ring.count > 0 || ring.ended
}
