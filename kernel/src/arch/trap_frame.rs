//! What a task was doing when it entered the kernel.
//!
//! The entry code builds the same frame for system calls, exceptions and interrupts, so that everything that looks at a
//! task's registers (signals, clone, exec, faults) sees one shape. On entry from user mode it lies at the very top of the
//! task's kernel stack.

use super::registers::flags;

/// `vector` of a frame that a system call built; interrupts and exceptions have 0 to 255.
pub(crate) const SYSTEM_CALL: u64 = 0x100;
/// The selectors a program runs with; the values are those Linux programs may look for.
pub(crate) const USER_CODE: u64 = 0x33;
pub(crate) const USER_DATA: u64 = 0x2b;

/// Registers in the order in which the entry code leaves them in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrapFrame {
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rcx: u64,
    pub(crate) rax: u64,
    /// Interrupt or exception number, or `SYSTEM_CALL`.
    pub(crate) vector: u64,
    /// The exception's error code; for a system call, its number (`rax` on entry, which the result overwrites).
    pub(crate) error: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) rflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
}

/// Bytes of a frame; a multiple of 16, so that the stack stays aligned below it.
pub(crate) const FRAME_BYTES: usize = size_of::<TrapFrame>();
const _: () = assert!(FRAME_BYTES.is_multiple_of(16));

impl TrapFrame {
    /// The state in which a new program starts: all registers zero but these two.
    pub(crate) fn new_user(rip: u64, rsp: u64) -> Self {
        Self { rip, rsp, cs: USER_CODE, ss: USER_DATA, rflags: flags::INTERRUPT | 2, ..Self::default() }
    }

    /// Whether user code was running.
    pub(crate) fn is_from_user(&self) -> bool {
        self.cs & 3 == 3
    }

    /// The six arguments of the system call that built this frame.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// Makes the frame safe to return to, whatever a program put into it: user selectors, user-choosable flags with
    /// interrupts on, and an instruction pointer at which a program can at least fault. A jump beyond the user half
    /// lands on the first address that is never mapped, because the return instruction itself would fault in the kernel.
    pub(crate) fn sanitise(&mut self) {
        self.cs = USER_CODE;
        self.ss = USER_DATA;
        self.rflags = self.rflags & flags::USER | flags::INTERRUPT | 2;
        if self.rip > super::USER_END {
            self.rip = super::USER_END;
        }
    }
}
