//! What happens when something interrupts a CPU, and on the way back to user mode.
//!
//! The entry code (`arch::entry`) calls the functions here with a full frame. Exceptions that a program caused go to their
//! owners: page faults to `memory`, the others to `process`. An exception in the kernel itself is the end.
//!
//! Handlers of interrupts run with interrupts off and never switch tasks: a switch that became necessary is a work flag of
//! the interrupted task, looked at on the way back to user mode. The kernel is not preemptible.

pub(crate) mod counters;
mod exception;
pub(crate) mod shootdown;
pub(crate) mod timer;

use crate::arch::registers::{disable_interrupts, enable_interrupts};
use crate::arch::{TrapFrame, apic};
use crate::console;
use crate::cpu;
use crate::task::{self, Work};

use counters::Kind;

/// The serial receiver.
pub(crate) const SERIAL: u8 = 0x24;
/// A disk has finished something.
pub(crate) const DISK: u8 = 0x25;
/// The local timer.
pub(crate) const TIMER: u8 = 0xec;
/// "Flush translations", or "pass a memory barrier": answered by `coherence`.
pub(crate) const SHOOTDOWN: u8 = 0xfb;
/// "Look at your work flags": the way back to user mode or the idle loop does the rest.
pub(crate) const RESCHEDULE: u8 = 0xfd;
/// What the interrupt controller delivers when it changed its mind.
pub(crate) const SPURIOUS: u8 = 0xff;

/// A system call, with interrupts on.
pub(crate) extern "C" fn on_system_call(frame: &mut TrapFrame) {
    crate::syscall::dispatch(frame);
}

/// An interrupt or exception, with interrupts off.
///
/// The crossing from user mode is counted before an exception is handled, as that may sleep, but *after* an interrupt is: its handler
/// does nothing for the program, goes straight back, and finds a request that comes meanwhile right behind itself. So whether a
/// thread in user mode counts as such does not depend on where its CPU's ticks fall.
pub(crate) extern "C" fn on_interrupt(frame: &mut TrapFrame) {
    if frame.is_from_user() && cpu::features::smap() {
        crate::arch::entry::forbid_user_access();
    }
    let vector = frame.vector as u8;
    if vector < 32 {
        if frame.is_from_user() {
            shootdown::COHERENCE.leave_user();
        }
        exception::handle(frame);
        return;
    }
    let this = cpu::this();
    this.handlers.set(this.handlers.get() + 1);
    match vector {
        TIMER => timer::on_interrupt(),
        SHOOTDOWN => shootdown::on_interrupt(frame),
        RESCHEDULE => {
            counters::count(Kind::Reschedule);
            task::on_reschedule();
        }
        SERIAL => {
            counters::count(Kind::Serial);
            console::input::on_interrupt();
        }
        DISK => {
            counters::count(Kind::Disk);
            crate::block::on_interrupt();
        }
        _ => counters::count(Kind::Spurious),
    }
    if vector != SPURIOUS {
        apic::end_of_interrupt();
    }
    this.handlers.set(this.handlers.get() - 1);
    if frame.is_from_user() {
        shootdown::COHERENCE.leave_user();
    }
}

/// An exception on a stack of its own: NMI, double fault, machine check.
pub(crate) extern "C" fn on_own_stack(frame: &mut TrapFrame) {
    exception::handle_on_own_stack(frame);
}

/// Before every return to user mode that is not a plain system call's: does the work that the task's flags ask for.
/// Called with interrupts off and leaves them off, so that no flag can be set between the last look and the return.
pub(crate) extern "C" fn before_user(frame: &mut TrapFrame) {
    loop {
        let work = task::current().pending_work();
        if work.is_empty() {
            break;
        }
        enable_interrupts();
        if work.contains(Work::RESCHEDULE) {
            task::yield_if_needed();
        }
        if work.contains(Work::INTERRUPTED) {
            crate::process::return_to_user(frame);
        }
        if work.contains(Work::SEQUENCE) {
            task::current().clear_sequence();
            crate::process::sequence::resume(frame);
        }
        disable_interrupts();
    }
    frame.sanitise();
}

/// Asks a CPU to look at its work flags.
pub(crate) fn send_reschedule(cpu: usize) {
    apic::send(cpu::apic_name(cpu).identifier, RESCHEDULE);
}
