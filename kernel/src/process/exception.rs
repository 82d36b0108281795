//! Exceptions of user mode become signals.

use super::signal::{Information, Signal, code, force};
use super::{FaultRecord, current};
use crate::arch::TrapFrame;
use ::memory::Fault;

/// Vectors as the processor numbers them.
const DIVIDE: u8 = 0;
const DEBUG: u8 = 1;
const BREAKPOINT: u8 = 3;
const OVERFLOW: u8 = 4;
const BOUND: u8 = 5;
const INVALID: u8 = 6;
const SEGMENT_NOT_PRESENT: u8 = 11;
const STACK_SEGMENT: u8 = 12;
const FLOATING_POINT: u8 = 16;
const MISALIGNED: u8 = 17;
const VECTOR_ARITHMETIC: u8 = 19;
const PAGE_FAULT: u64 = 14;

/// An exception other than a page fault, taken in user mode.
pub(crate) fn exception(frame: &mut TrapFrame, vector: u8) {
    record(u64::from(vector), frame.error, 0);
    let at = |signal, code| Information::fault(signal, code, frame.rip);
    force(match vector {
        DIVIDE => at(Signal::SIGFPE, code::FPE_INTDIV),
        DEBUG => at(Signal::SIGTRAP, code::TRAP_TRACE),
        BREAKPOINT => Information::from_kernel(Signal::SIGTRAP),
        OVERFLOW | BOUND => Information::from_kernel(Signal::SIGSEGV),
        INVALID => at(Signal::SIGILL, code::ILL_ILLOPN),
        SEGMENT_NOT_PRESENT | STACK_SEGMENT => Information::from_kernel(Signal::SIGBUS),
        FLOATING_POINT | VECTOR_ARITHMETIC => at(Signal::SIGFPE, floating_point_code(vector)),
        MISALIGNED => Information::fault(Signal::SIGBUS, code::BUS_ADRALN, 0),
        // General protection: the address is not known.
        _ => Information::from_kernel(Signal::SIGSEGV),
    });
}

/// A page fault of user mode that `memory` could not resolve. Running out of memory is not decided here.
pub(crate) fn fault(address: u64, error: u64, reason: Fault) {
    record(PAGE_FAULT, error, address);
    force(match reason {
        Fault::NotMapped => Information::fault(Signal::SIGSEGV, code::SEGV_MAPERR, address),
        Fault::NotAllowed => Information::fault(Signal::SIGSEGV, code::SEGV_ACCERR, address),
        Fault::Bus => Information::fault(Signal::SIGBUS, code::BUS_ADRERR, address),
        // It is ending as it is.
        Fault::OutOfMemory | Fault::Abandoned => Information::from_kernel(Signal::SIGKILL),
    });
}

fn record(vector: u64, error: u64, address: u64) {
    *current().fault.lock() = FaultRecord { vector, error, address };
}

/// Which floating point exception it was, from the unmasked bits of the state.
fn floating_point_code(vector: u8) -> i32 {
    let pending = crate::task::current().with_fpu(|state| {
        let bytes = state.bytes();
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if vector == FLOATING_POINT {
            // x87: status word without what the control word masks.
            half(2) & !half(0) & 0x3f
        } else {
            // SSE: the flags are bits 0..6 of MXCSR, their masks bits 7..13.
            half(24) & !(half(24) >> 7) & 0x3f
        }
    });
    match pending {
        bits if bits & 0x01 != 0 => code::FPE_FLTINV,
        bits if bits & 0x04 != 0 => code::FPE_FLTDIV,
        bits if bits & 0x08 != 0 => code::FPE_FLTOVF,
        bits if bits & 0x12 != 0 => code::FPE_FLTUND,
        bits if bits & 0x20 != 0 => code::FPE_FLTRES,
        _ => code::FPE_FLTINV,
    }
}
