//! The frame that a handler runs on, and the way back from it.
//!
//! From high to low addresses on the user's stack, as Linux lays it out on x86-64: the XSAVE area (64-byte
//! aligned, followed by a magic word), `siginfo_t`, `ucontext`, the restorer's address. The handler returns
//! into the restorer, which calls `rt_sigreturn` with `rsp` eight bytes above the frame.
//!
//! What comes back from user memory is an allegation: flags are masked, segments are the kernel's choice, an
//! instruction pointer outside the user half and floating point state that the processor would refuse end in
//! SIGSEGV.

use super::super::{FaultRecord, Thread, current};
use super::action::{Action, ActionFlags, Disposition};
use super::information::{INFORMATION_SIZE, Information};
use super::mask::{AlternateStack, set_mask};
use super::set::{Signal, SignalSet};
use crate::arch::{FpuState, TrapFrame, floating_point};
use crate::memory::user;
use crate::process::image::USER_END;
use crate::syscall::Errno;
use crate::task;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Least alternate stack that `sigaltstack` accepts (`MINSIGSTKSZ`).
pub(crate) const MINIMUM_STACK: u64 = 2048;
/// Bytes below `rsp` that compiled code may use without moving it.
const RED_ZONE: u64 = 128;
/// Marks an XSAVE area in `fpx_sw_bytes`, and its end.
const MAGIC_START: u32 = 0x4650_5853;
const MAGIC_END: u32 = 0x4650_5845;
const MAGIC_END_SIZE: usize = 4;
/// Bytes of the part that FXSAVE defines, and of the header behind it.
const LEGACY: usize = 512;
const HEADER: usize = 64;
/// Where Linux's own words are in the 512 legacy bytes.
const SOFTWARE_WORDS: usize = 464;
/// `uc_flags`: extended state present, `ss` saved, `ss` to be restored strictly.
const CONTEXT_FLAGS: u64 = 1 | 2 | 4;
/// Flags that a program may set: AC, OF, DF, TF, SF, ZF, AF, PF, CF, RF.
const USER_FLAGS: u64 = 0x0005_0dd5;
const FLAG_TRAP: u64 = 1 << 8;
const FLAG_DIRECTION: u64 = 1 << 10;
const FLAG_RESUME: u64 = 1 << 16;

/// SS_ONSTACK, SS_DISABLE and SS_AUTODISARM of `stack_t`.
pub(in super::super) const STACK_IN_USE: u32 = 1;
pub(in super::super) const STACK_DISABLED: u32 = 2;
pub(in super::super) const STACK_DISARM: u32 = 1 << 31;

/// `stack_t`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct StackRecord {
    /// Lowest address.
    pub(crate) base: u64,
    /// SS_ONSTACK, SS_DISABLE, SS_AUTODISARM.
    pub(crate) flags: u32,
    /// Unused.
    pub(crate) padding: u32,
    /// Bytes.
    pub(crate) size: u64,
}

impl StackRecord {
    /// What `sigaltstack` shows while `rsp` is `pointer`.
    pub(crate) fn of(stack: AlternateStack, pointer: u64) -> StackRecord {
        let mut flags = if stack.disarm { STACK_DISARM } else { 0 };
        if stack.size == 0 {
            flags |= STACK_DISABLED;
        } else if stack.holds(pointer) {
            flags |= STACK_IN_USE;
        }
        StackRecord { base: stack.base, flags, padding: 0, size: stack.size }
    }

    /// Checks and sets the current thread's stack while `rsp` is `pointer`.
    ///
    /// # Errors
    /// EPERM if it is in use, EINVAL for unknown flags, ENOMEM if it is too small.
    pub(crate) fn install(self, pointer: u64) -> Result<(), Errno> {
        let thread = current();
        let mut stack = thread.alternate_stack.lock();
        if stack.holds(pointer) {
            return Err(Errno::EPERM);
        }
        let disarm = self.flags & STACK_DISARM != 0;
        *stack = match self.flags & !STACK_DISARM {
            STACK_DISABLED => AlternateStack { base: 0, size: 0, disarm },
            0 | STACK_IN_USE if self.size < MINIMUM_STACK => return Err(Errno::ENOMEM),
            0 | STACK_IN_USE => AlternateStack { base: self.base, size: self.size, disarm },
            _ => return Err(Errno::EINVAL),
        };
        Ok(())
    }
}

/// `struct sigcontext`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Registers {
    r8: u64,
    r9: u64,
    r10: u64,
    r11: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
    rdi: u64,
    rsi: u64,
    rbp: u64,
    rbx: u64,
    rdx: u64,
    rax: u64,
    rcx: u64,
    rsp: u64,
    rip: u64,
    rflags: u64,
    cs: u16,
    gs: u16,
    fs: u16,
    ss: u16,
    error: u64,
    trap: u64,
    old_mask: u64,
    fault_address: u64,
    extended_state: u64,
    reserved: [u64; 8],
}

/// Restorer, `ucontext` and `siginfo_t`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Frame {
    restorer: u64,
    flags: u64,
    link: u64,
    stack: StackRecord,
    registers: Registers,
    mask: u64,
    information: [u8; INFORMATION_SIZE],
}

const CONTEXT_OFFSET: u64 = core::mem::offset_of!(Frame, flags) as u64;
const INFORMATION_OFFSET: u64 = core::mem::offset_of!(Frame, information) as u64;

/// Bytes that a frame needs at most on this CPU, for AT_MINSIGSTKSZ.
pub(crate) fn frame_size() -> u64 {
    (floating_point::state_bytes() + MAGIC_END_SIZE + 64 + size_of::<Frame>() + 16) as u64 + RED_ZONE
}

/// Puts the frame on the stack and points `trap` at the handler.
///
/// # Errors
/// EFAULT if the stack cannot be written or there is no restorer; nothing but the stack's bytes has changed
/// then.
pub(super) fn push(
    trap: &mut TrapFrame,
    thread: &Thread,
    information: Information,
    action: Action,
) -> Result<(), Errno> {
    let Disposition::Handler(handler) = action.disposition else { return Err(Errno::EFAULT) };
    if !action.flags.contains(ActionFlags::RESTORER) || handler >= USER_END {
        return Err(Errno::EFAULT);
    }
    let alternate = *thread.alternate_stack.lock();
    let area_at = extended_state_address(trap, alternate, action)?;
    let at = ((area_at - size_of::<Frame>() as u64) & !15) - 8;
    if alternate.holds(trap.rsp) && !alternate.holds(at) {
        return Err(Errno::EFAULT);
    }
    write_extended_state(area_at)?;
    let saved = *thread.saved_mask.lock();
    let frame = Frame {
        restorer: action.restorer,
        flags: CONTEXT_FLAGS,
        link: 0,
        stack: StackRecord::of(alternate, trap.rsp),
        registers: save_registers(trap, *thread.fault.lock(), thread.blocked(), area_at),
        mask: saved.unwrap_or(thread.blocked()).bits(),
        information: information.to_bytes(),
    };
    user::write(at, &frame)?;
    *thread.saved_mask.lock() = None;
    if alternate.disarm {
        *thread.alternate_stack.lock() = AlternateStack::default();
    }
    task::current().with_fpu(|state| *state = FpuState::new());
    trap.rdi = u64::from(information.signal.number());
    trap.rsi = at + INFORMATION_OFFSET;
    trap.rdx = at + CONTEXT_OFFSET;
    trap.rax = 0;
    trap.rip = handler;
    trap.rsp = at;
    trap.rflags &= !(FLAG_TRAP | FLAG_DIRECTION | FLAG_RESUME);
    Ok(())
}

fn extended_state_address(trap: &TrapFrame, alternate: AlternateStack, action: Action) -> Result<u64, Errno> {
    let switch =
        action.flags.contains(ActionFlags::ON_STACK) && alternate.size != 0 && !alternate.holds(trap.rsp);
    let top =
        if switch { alternate.base.checked_add(alternate.size) } else { trap.rsp.checked_sub(RED_ZONE) };
    let needed = floating_point::state_bytes() + MAGIC_END_SIZE;
    let area = top.and_then(|top| top.checked_sub(needed as u64)).ok_or(Errno::EFAULT)? & !63;
    if area < 65536 { Err(Errno::EFAULT) } else { Ok(area) }
}

/// Stores the extended state with Linux's words about it: total size, which parts are there, size of the
/// area.
fn write_extended_state(at: u64) -> Result<(), Errno> {
    let mut area = task::current().with_fpu(|state| state.bytes().to_vec());
    let size = area.len();
    let mut put = |offset: usize, bytes: &[u8]| {
        let start = SOFTWARE_WORDS + offset;
        area[start..start + bytes.len()].copy_from_slice(bytes);
    };
    put(0, &[0; 48]);
    put(0, &MAGIC_START.to_le_bytes());
    put(4, &((size + MAGIC_END_SIZE) as u32).to_le_bytes());
    put(8, &floating_point::enabled_states().to_le_bytes());
    put(16, &(size as u32).to_le_bytes());
    user::write_bytes(at, &area)?;
    user::write(at + size as u64, &MAGIC_END)
}

fn save_registers(trap: &TrapFrame, fault: FaultRecord, mask: SignalSet, extended_state: u64) -> Registers {
    Registers {
        r8: trap.r8,
        r9: trap.r9,
        r10: trap.r10,
        r11: trap.r11,
        r12: trap.r12,
        r13: trap.r13,
        r14: trap.r14,
        r15: trap.r15,
        rdi: trap.rdi,
        rsi: trap.rsi,
        rbp: trap.rbp,
        rbx: trap.rbx,
        rdx: trap.rdx,
        rax: trap.rax,
        rcx: trap.rcx,
        rsp: trap.rsp,
        rip: trap.rip,
        rflags: trap.rflags,
        cs: trap.cs as u16,
        gs: 0,
        fs: 0,
        ss: trap.ss as u16,
        error: fault.error,
        trap: fault.vector,
        old_mask: mask.bits(),
        fault_address: fault.address,
        extended_state,
        reserved: [0; 8],
    }
}

/// `rt_sigreturn`: goes back to what the handler interrupted. Returns the value for `rax`.
///
/// A frame that cannot be restored costs the process a SIGSEGV, as on Linux.
pub(crate) fn return_from_handler(trap: &mut TrapFrame) -> u64 {
    if restore(trap).is_err() {
        super::force(Information::from_kernel(Signal::SIGSEGV));
        return 0;
    }
    trap.rax
}

fn restore(trap: &mut TrapFrame) -> Result<(), Errno> {
    let at = trap.rsp.checked_sub(8).ok_or(Errno::EFAULT)?;
    let frame: Frame = user::read(at)?;
    let registers = frame.registers;
    if registers.rip >= USER_END {
        return Err(Errno::EFAULT);
    }
    restore_extended_state(registers.extended_state)?;
    set_mask(SignalSet::from_bits(frame.mask));
    restore_registers(trap, &registers);
    // Linux ignores a stack that it would not accept, and so do we.
    let _ = frame.stack.install(trap.rsp);
    Ok(())
}

fn restore_registers(trap: &mut TrapFrame, saved: &Registers) {
    trap.r8 = saved.r8;
    trap.r9 = saved.r9;
    trap.r10 = saved.r10;
    trap.r11 = saved.r11;
    trap.r12 = saved.r12;
    trap.r13 = saved.r13;
    trap.r14 = saved.r14;
    trap.r15 = saved.r15;
    trap.rdi = saved.rdi;
    trap.rsi = saved.rsi;
    trap.rbp = saved.rbp;
    trap.rbx = saved.rbx;
    trap.rdx = saved.rdx;
    trap.rax = saved.rax;
    trap.rcx = saved.rcx;
    trap.rsp = saved.rsp;
    trap.rip = saved.rip;
    trap.rflags = trap.rflags & !USER_FLAGS | saved.rflags & USER_FLAGS;
}

/// Loads the extended state at `at`. Without Linux's marks only the 512 legacy bytes count; with no area at
/// all the state is reset.
fn restore_extended_state(at: u64) -> Result<(), Errno> {
    let mut area = alloc::vec![0; floating_point::state_bytes()];
    let mut length = 0;
    if at != 0 {
        user::read_bytes(at, &mut area[..LEGACY])?;
        length = marked_length(at, &area);
        if length > LEGACY {
            user::read_bytes(at, &mut area[..length])?;
        }
    }
    // What the processor would refuse is masked out on the way.
    task::current().with_fpu(|state| state.set_bytes(&area[..length]));
    Ok(())
}

/// How much of the area at `at` is valid, going by the marks in its legacy part, which is in `area`.
fn marked_length(at: u64, area: &[u8]) -> usize {
    let word = |offset: usize| {
        let start = SOFTWARE_WORDS + offset;
        u32::from_le_bytes([area[start], area[start + 1], area[start + 2], area[start + 3]])
    };
    let claimed = word(16) as usize;
    let marked = word(0) == MAGIC_START
        && (LEGACY + HEADER..=area.len()).contains(&claimed)
        && word(4) as usize >= claimed + MAGIC_END_SIZE
        && user::read::<u32>(at + claimed as u64).is_ok_and(|magic| magic == MAGIC_END);
    if marked { claimed } else { LEGACY }
}
