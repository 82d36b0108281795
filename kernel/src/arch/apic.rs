//! The local interrupt controller of each CPU: interrupts between CPUs, the one-shot timer, end of interrupt.
//!
//! With x2APIC (when CPUID has it) the registers are model-specific registers and a command is one write; without, they
//! are memory at `BASE` in the direct map and a command is two writes, which no interrupt handler may separate.
//!
//! A command costs more than all else that the sender of an interrupt does, so one command should reach many CPUs. Each controller has a
//! *logical name*, made of a group and one bit in it, and a command reaches any set of one group. With x2APIC the hardware makes the names,
//! sixteen to a group. Without, all of up to eight CPUs are one group (the flat model); more CPUs than that have no logical names and get a
//! command each. (The cluster model would reach four at once, but kernels stay away from it, so that nobody knows how well it works.)
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};

use super::registers::{self, cpuid, msr};
use super::layout::direct;

/// Physical address of the registers.
pub(crate) const BASE: u64 = 0xfee0_0000;

const IDENTIFIER: u32 = 0x20;
const TASK_PRIORITY: u32 = 0x80;
const END_OF_INTERRUPT: u32 = 0xb0;
const LOGICAL_NAME: u32 = 0xd0;
const LOGICAL_MODEL: u32 = 0xe0;
const SPURIOUS: u32 = 0xf0;
const COMMAND: u32 = 0x300;
const COMMAND_HIGH: u32 = 0x310;
const TIMER: u32 = 0x320;
const LINE_0: u32 = 0x350;
const LINE_1: u32 = 0x360;
const TIMER_INITIAL: u32 = 0x380;
const TIMER_CURRENT: u32 = 0x390;
const TIMER_DIVIDE: u32 = 0x3e0;
const DIVIDE_BY_ONE: u32 = 0b1011;
const MASKED: u32 = 1 << 16;

/// CPUs that the flat model has names for.
const FLAT_NAMES: usize = 8;

// Of a command.
const LOGICAL: u32 = 1 << 11;
const ASSERT: u32 = 1 << 14;
const PENDING: u32 = 1 << 12;
const ALL_OTHERS: u32 = 0b11 << 18;
const NON_MASKABLE: u32 = 0b100 << 8;
const RESET: u32 = 0b101 << 8;
const STARTUP: u32 = 0b110 << 8;

static X2: AtomicBool = AtomicBool::new(false);

fn read(register: u32) -> u32 {
    if X2.load(Ordering::Relaxed) {
        registers::read_msr(0x800 + (register >> 4)) as u32
    } else {
        // SAFETY: the boot map has this device page, uncached, and the offset is one of the registers above.
        unsafe { (direct(BASE + u64::from(register)) as *const u32).read_volatile() }
    }
}

fn write(register: u32, value: u32) {
    // SAFETY: as in `read`; the registers written here affect interrupts only.
    unsafe {
        if X2.load(Ordering::Relaxed) {
            registers::write_msr(0x800 + (register >> 4), u64::from(value));
        } else {
            (direct(BASE + u64::from(register)) as *mut u32).write_volatile(value);
        }
    }
}

fn command(destination: u32, command: u32) {
    if X2.load(Ordering::Relaxed) {
        // SAFETY: sends an interrupt. The fence orders earlier stores before it, which this write alone does not.
        unsafe {
            core::arch::x86_64::_mm_mfence();
            registers::write_msr(0x800 + (COMMAND >> 4), u64::from(destination) << 32 | u64::from(command));
        }
        return;
    }
    let enabled = registers::interrupts_enabled();
    registers::disable_interrupts();
    while read(COMMAND) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_HIGH, destination << 24);
    write(COMMAND, command);
    if enabled {
        registers::enable_interrupts();
    }
}

/// Who a controller is to those who send it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its own identifier.
    pub(crate) identifier: u32,
    /// Its logical name; 0 if it has none.
    pub(crate) logical: u32,
}

/// Turns the controller of the running CPU on, timer and pins masked. It is that of CPU `index` of `count`, which is the same for all.
pub(crate) fn enable_on_this_cpu(index: usize, count: usize, spurious_vector: u8) -> Name {
    let mut base = registers::read_msr(msr::APIC_BASE) | 1 << 11;
    let x2 = cpuid(1, 0).ecx & 1 << 21 != 0;
    if x2 {
        base |= 1 << 10;
    }
    // SAFETY: enables the controller at the address it has; nothing has been sent to it yet.
    unsafe { registers::write_msr(msr::APIC_BASE, base) }
    X2.store(x2, Ordering::Relaxed);
    write(TIMER, MASKED);
    write(LINE_0, MASKED);
    write(LINE_1, MASKED);
    write(TASK_PRIORITY, 0);
    write(TIMER_DIVIDE, DIVIDE_BY_ONE);
    let name = if x2 {
        Name { identifier: read(IDENTIFIER), logical: read(LOGICAL_NAME) }
    } else {
        Name { identifier: read(IDENTIFIER) >> 24, logical: name_in_flat_model(index, count) }
    };
    write(SPURIOUS, 1 << 8 | u32::from(spurious_vector));
    name
}

/// Gives this CPU's controller its name in the flat model, if all CPUs have one.
fn name_in_flat_model(index: usize, count: usize) -> u32 {
    if count > FLAT_NAMES {
        return 0;
    }
    write(LOGICAL_MODEL, u32::MAX);
    write(LOGICAL_NAME, 1 << (24 + index));
    1 << index
}

/// Says that the interrupt in service is done.
pub(crate) fn end_of_interrupt() {
    write(END_OF_INTERRUPT, 0);
}

/// Sends an interrupt to one CPU.
pub(crate) fn send(identifier: u32, vector: u8) {
    command(identifier, ASSERT | u32::from(vector));
}

/// Sends an interrupt to CPUs, with as few commands as their names allow: fewest when those of a group follow each other.
pub(crate) fn send_to(targets: impl Iterator<Item = Name>, vector: u8) {
    let vector = u32::from(vector);
    let names = if X2.load(Ordering::Relaxed) { 0xffff } else { 0xff };
    let mut gathered = 0;
    for Name { identifier, logical } in targets {
        if logical == 0 {
            command(identifier, ASSERT | vector);
            continue;
        }
        if gathered != 0 && (gathered ^ logical) & !names != 0 {
            command(gathered, LOGICAL | ASSERT | vector);
            gathered = 0;
        }
        gathered |= logical;
    }
    if gathered != 0 {
        command(gathered, LOGICAL | ASSERT | vector);
    }
}

/// Sends a non-maskable interrupt to every other CPU.
pub(crate) fn send_nmi_to_others() {
    command(0, ALL_OTHERS | ASSERT | NON_MASKABLE);
}

/// Resets every other CPU, to wait for `send_startup`.
pub(crate) fn send_reset_to_others() {
    command(0, ALL_OTHERS | ASSERT | RESET);
}

/// Starts every other CPU that waits after a reset, in real mode at `page << 12`.
pub(crate) fn send_startup_to_others(page: u8) {
    command(0, ALL_OTHERS | ASSERT | STARTUP | u32::from(page));
}

/// Starts the timer: one interrupt after `ticks` (at least 1) of the controller's clock.
pub(crate) fn start_timer(vector: u8, ticks: u32) {
    write(TIMER, u32::from(vector));
    write(TIMER_INITIAL, ticks.max(1));
}

/// Starts the timer without an interrupt, for calibration.
pub(crate) fn start_silent_timer() {
    write(TIMER, MASKED);
    write(TIMER_INITIAL, u32::MAX);
}

/// What is left of the running timer.
pub(crate) fn timer_left() -> u32 {
    read(TIMER_CURRENT)
}
