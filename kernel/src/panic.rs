//! The end of a kernel that has found itself wrong: say why, where and how it got there, stop everything, exit.
//!
//! The backtrace follows the chain of frame pointers as far as it stays on one kernel stack; addresses are plain numbers, one
//! per line, for the host to look up in the image.
#![allow(unsafe_code)]

use core::arch::asm;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::layout::{KERNEL_BASE, STACKS};
use crate::arch::{TrapFrame, apic, registers};
use crate::console::write_log_unlocked;
use crate::task::name_of_current;
use crate::{cpu, power};

/// The CPU that panicked first, plus 1; 0 while all is well.
static PANICKING: AtomicUsize = AtomicUsize::new(0);
/// Frames shown; a longer chain is a loop.
const LONGEST: usize = 64;
/// Bytes within which two frames of one stack must lie.
const LARGEST_FRAME: u64 = 32 * 1024;

/// Whether some CPU is panicking: the others stop when they are told by NMI.
pub(crate) fn in_progress() -> bool {
    PANICKING.load(Ordering::Relaxed) != 0
}

/// Makes this CPU the one that reports. Another that panics meanwhile stops; a panic within the report ends the machine.
fn stop_others() {
    registers::disable_interrupts();
    let me = cpu::index() + 1;
    match PANICKING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => apic::send_nmi_to_others(),
        Err(first) if first == me => power::exit(power::PANIC),
        Err(_) => registers::halt_forever(),
    }
}

/// Reports an exception that the kernel cannot answer, with the registers at that moment, and ends the machine.
pub(crate) fn oops(frame: &TrapFrame, what: core::fmt::Arguments<'_>) -> ! {
    stop_others();
    write_log_unlocked(format_args!("kernel panic on CPU {} ({} task): {what}\n", cpu::index(), name_of_current()));
    let registers = [
        [("rip", frame.rip), ("rsp", frame.rsp), ("rflags", frame.rflags)],
        [("rax", frame.rax), ("rbx", frame.rbx), ("rcx", frame.rcx)],
        [("rdx", frame.rdx), ("rsi", frame.rsi), ("rdi", frame.rdi)],
        [("rbp", frame.rbp), ("r8", frame.r8), ("r9", frame.r9)],
        [("r10", frame.r10), ("r11", frame.r11), ("r12", frame.r12)],
        [("r13", frame.r13), ("r14", frame.r14), ("r15", frame.r15)],
        [("cs", frame.cs), ("error", frame.error), ("cr2", registers::fault_address())],
    ];
    for row in registers {
        for (name, value) in row {
            write_log_unlocked(format_args!("  {name:>6} {value:016x}"));
        }
        write_log_unlocked(format_args!("\n"));
    }
    write_log_unlocked(format_args!("  at {:#x}\n", frame.rip));
    backtrace(frame.rbp);
    power::exit(power::PANIC)
}

/// Writes the return addresses found from a frame pointer on.
fn backtrace(mut frame: u64) {
    for _ in 0..LONGEST {
        let on_stack = frame >= STACKS && frame.is_multiple_of(8);
        if !on_stack {
            return;
        }
        // SAFETY: code is compiled with frame pointers, so a frame pointer on a kernel stack points at the caller's frame
        // pointer and the return address. A wrong one ends in a nested panic, which halts this CPU.
        let [next, address] = unsafe { (frame as *const [u64; 2]).read() };
        if address < KERNEL_BASE {
            return;
        }
        write_log_unlocked(format_args!("  at {address:#x}\n"));
        if next <= frame || next - frame > LARGEST_FRAME {
            return;
        }
        frame = next;
    }
}

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    let frame: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) }
    stop_others();
    write_log_unlocked(format_args!("kernel panic on CPU {} ({} task): {information}\n", cpu::index(), name_of_current()));
    backtrace(frame);
    power::exit(power::PANIC)
}
