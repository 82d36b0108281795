//! Exceptions: a program's go to their owners, the kernel's own end in a report.

use super::counters::{self, Kind};
use crate::arch::registers::{disable_interrupts, enable_interrupts};
use crate::arch::{TrapFrame, registers};
use crate::{panic, task};

const NAMES: [&str; 22] = [
    "divide error",
    "debug exception",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound exceeded",
    "invalid instruction",
    "no floating-point unit",
    "double fault (kernel stack overflow?)",
    "coprocessor segment overrun",
    "invalid task state",
    "segment not present",
    "stack segment fault",
    "general protection fault",
    "page fault",
    "reserved exception",
    "floating-point error",
    "misaligned access",
    "machine check",
    "vector arithmetic error",
    "virtualization exception",
    "control protection exception",
];
const NMI: u64 = 2;
const PAGE_FAULT: u64 = 14;

fn name(frame: &TrapFrame) -> &'static str {
    NAMES.get(frame.vector as usize).unwrap_or(&"unknown exception")
}

/// An exception on the interrupted stack, with interrupts off.
pub(super) fn handle(frame: &mut TrapFrame) {
    let address = registers::fault_address();
    if !frame.is_from_user() {
        if frame.vector == PAGE_FAULT && crate::self_check::recover(frame) {
            return;
        }
        die(frame, address);
    }
    // User code always runs with interrupts on, and its fault may sleep.
    enable_interrupts();
    if task::is_sampled() { task::sampled(|| serve(frame, address)) } else { serve(frame, address) }
    disable_interrupts();
}

fn serve(frame: &mut TrapFrame, address: u64) {
    if frame.vector == PAGE_FAULT {
        let error = frame.error;
        crate::memory::page_fault(address, error);
    } else {
        let vector = frame.vector as u8;
        crate::process::exception(frame, vector);
    }
}

fn die(frame: &TrapFrame, address: u64) -> ! {
    if frame.vector == PAGE_FAULT {
        panic::oops(frame, format_args!("page fault in the kernel at {address:#x}"));
    }
    panic::oops(frame, format_args!("{} in the kernel", name(frame)));
}

/// An exception on a stack of its own.
pub(super) fn handle_on_own_stack(frame: &TrapFrame) {
    if frame.vector == NMI {
        counters::count(Kind::Nmi);
        if panic::in_progress() {
            registers::halt_forever();
        }
        return;
    }
    panic::oops(frame, format_args!("{}", name(frame)));
}
