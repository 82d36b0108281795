//! Restartable sequences (`rseq`): short pieces of user code that either run through on one CPU or start again.
//!
//! A thread tells the kernel where its `struct rseq` lies. There the kernel keeps the number of the CPU that the thread runs on, and
//! there the thread says, by a pointer to a descriptor, that it is inside a sequence. When something happened that a sequence must not
//! survive (another thread had the CPU, the thread came to another CPU, a signal's handler is about to run, another thread asked
//! by `membarrier`), the thread continues at the sequence's abort handler instead of where it was.
//!
//! ```text
//!   the task leaves its CPU, a barrier asks          Work::SEQUENCE
//!   the way back to user mode, interrupts on         clear it; write the CPU's number; in a sequence? continue at its abort handler
//!   interrupts off, look again                       set again if the task left its CPU meanwhile, so the number is right
//! ```
//!
//! **Who pays.** A task without a registration never has the flag. One that has left its CPU inside a system call is not inside a sequence
//! (a sequence must not make any; Linux's debugging builds end a program that does), so it needs only the number, and only if
//! that is another one: programs whose threads block and wake on one CPU pay nothing.
//!
//! **All of it is the program's memory**, so every word is an allegation. A descriptor that makes no sense, or one whose abort handler is not
//! preceded by the registered signature (which keeps an attacker who can write the pointer from jumping anywhere), ends in SIGSEGV, as on
//! Linux. Version 6.1's form: 32 bytes, of which the kernel writes the two CPU numbers.

use super::signal::{Information, Signal, force};
use super::{Thread, USER_END, current};
use crate::arch::TrapFrame;
use crate::memory::user;
use crate::syscall::Errno;
use crate::{cpu, task};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes of `struct rseq`, and its alignment.
const SIZE: u64 = 32;
/// Where in it the pointer to the descriptor lies, and the flags; the CPU's two numbers come first.
const DESCRIPTOR: u64 = 8;
const FLAGS: u64 = 16;
/// The CPU's number of a thread that is not registered.
const UNINITIALISED: u32 = u32::MAX;

/// Where a thread has its `struct rseq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    address: u64,
    signature: u32,
}

/// The first two words of `struct rseq`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Numbers {
    start: u32,
    current: u32,
}

/// `struct rseq_cs`: a sequence.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Descriptor {
    version: u32,
    flags: u32,
    start: u64,
    length: u64,
    abort: u64,
}

impl Descriptor {
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.length
    }

    /// Whether it lies in user space, ends after it begins, and aborts outside of itself.
    fn makes_sense(&self) -> bool {
        let ends_in_user_space = self.start.checked_add(self.length).is_some_and(|end| end < USER_END);
        self.version == 0 && ends_in_user_space && self.abort < USER_END && !self.contains(self.abort)
    }
}

/// Registers the current thread's `struct rseq`.
///
/// # Errors
/// EINVAL for a wrong size or alignment, or if another one is registered; EPERM if this one is with another signature; EBUSY if it is;
/// EFAULT beyond user space.
pub(crate) fn register(address: u64, size: u64, signature: u32) -> Result<(), Errno> {
    let thread = current();
    let mut registered = thread.sequence.lock();
    if let Some(old) = *registered {
        return Err(match () {
            () if old.address != address || size != SIZE => Errno::EINVAL,
            () if old.signature != signature => Errno::EPERM,
            () => Errno::EBUSY,
        });
    }
    if size != SIZE || !address.is_multiple_of(SIZE) {
        return Err(Errno::EINVAL);
    }
    user::check_range(address, size)?;
    *registered = Some(Registration { address, signature });
    drop(registered);
    task::current().watch_sequence(true);
    Ok(())
}

/// Takes the registration back.
///
/// # Errors
/// EINVAL if there is none, or another; EPERM for another signature; EFAULT if the memory has gone.
pub(crate) fn unregister(address: u64, size: u64, signature: u32) -> Result<(), Errno> {
    let thread = current();
    let old = (*thread.sequence.lock()).filter(|old| old.address == address).ok_or(Errno::EINVAL)?;
    if size != SIZE {
        return Err(Errno::EINVAL);
    }
    if old.signature != signature {
        return Err(Errno::EPERM);
    }
    user::write(address, &Numbers { start: 0, current: UNINITIALISED })?;
    forget(&thread);
    Ok(())
}

/// Drops the registration of the current thread, whose program is being replaced.
pub(super) fn forget(thread: &Thread) {
    *thread.sequence.lock() = None;
    task::current().watch_sequence(false);
}

/// On the way back to user mode, after something that no sequence survives.
pub(crate) fn resume(frame: &mut TrapFrame) {
    let thread = current();
    let Some(registration) = *thread.sequence.lock() else { return };
    let here = cpu::index() as u32;
    task::current().note_sequence_cpu(here);
    let written = user::write(registration.address, &Numbers { start: here, current: here });
    if written.and_then(|()| abandon(registration, frame)).is_err() {
        force(Information::from_kernel(Signal::SIGSEGV));
    }
}

/// Before a handler's frame is made: the handler returns to the abort handler of the sequence that the signal struck.
///
/// # Errors
/// The sequence makes no sense or cannot be read; the thread must not go on.
pub(super) fn interrupt(thread: &Thread, frame: &mut TrapFrame) -> Result<(), Errno> {
    let registration = *thread.sequence.lock();
    registration.map_or(Ok(()), |registration| abandon(registration, frame))
}

/// Makes the frame continue at the abort handler, if it is inside a sequence.
fn abandon(registration: Registration, frame: &mut TrapFrame) -> Result<(), Errno> {
    let pointer = registration.address + DESCRIPTOR;
    let place = user::read::<u64>(pointer)?;
    if place == 0 {
        return Ok(());
    }
    let descriptor = user::read::<Descriptor>(place)?;
    if !descriptor.makes_sense() || !is_signed(registration, &descriptor)? {
        return Err(Errno::EINVAL);
    }
    if descriptor.contains(frame.rip) {
        // These flags once kept sequences from being restarted; whoever still sets them expects what no kernel does any more.
        if descriptor.flags != 0 || user::read::<u32>(registration.address + FLAGS)? != 0 {
            return Err(Errno::EINVAL);
        }
        frame.rip = descriptor.abort;
    }
    user::write(pointer, &0_u64)
}

fn is_signed(registration: Registration, descriptor: &Descriptor) -> Result<bool, Errno> {
    let before = descriptor.abort.checked_sub(size_of::<u32>() as u64).ok_or(Errno::EINVAL)?;
    Ok(user::read::<u32>(before)? == registration.signature)
}
