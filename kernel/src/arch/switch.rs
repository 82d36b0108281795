//! Changing from one kernel stack to another.
//!
//! The callee-saved registers and the return address of a task that is not running lie on its own stack; only the stack
//! pointer is kept in the task. A task that never ran has a stack made to look as if it had stopped just before
//! `task_start`.
#![allow(unsafe_code)]

use core::arch::naked_asm;

use super::trap_frame::{FRAME_BYTES, TrapFrame};

/// Saves this stack's state at `*save` and continues on the stack `load`, where an earlier call of this function returns.
///
/// # Safety
/// `load` was written by this function, or made by `prepare_user` or `prepare_kernel`, and nobody else uses that stack.
/// Interrupts are off. The caller has arranged everything else that belongs to the task being continued.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn switch_stack(save: *mut u64, load: u64) {
    naked_asm!(
        "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp",
        "ret",
    )
}

/// First code of a new kernel task: finish the switch, call the function in rbx (it does not return).
#[unsafe(naked)]
unsafe extern "C" fn kernel_start() {
    naked_asm!("call {arrived}", "sti", "call rbx", "ud2", arrived = sym crate::task::arrived)
}

/// First code of a new user task: finish the switch, return to user mode through the frame above.
#[unsafe(naked)]
unsafe extern "C" fn user_start() {
    naked_asm!("call {arrived}", "jmp user_return", arrived = sym crate::task::arrived)
}

/// Writes the switch record below `frame_end` and returns the stack pointer to give to `switch_stack`.
///
/// # Safety
/// The 64 bytes below `below` must be unused memory of the task's stack.
unsafe fn prepare(below: u64, start: unsafe extern "C" fn(), rbx: u64) -> u64 {
    let record = [0, 0, 0, 0, rbx, 0, start as *const () as u64];
    let at = below - size_of_val(&record) as u64;
    // SAFETY: the caller's promise.
    unsafe { (at as *mut [u64; 7]).write(record) }
    at
}

/// Makes an unused stack start at `function`. Returns its stack pointer.
///
/// # Safety
/// `top` is the top of a mapped kernel stack that nothing uses.
pub(crate) unsafe fn prepare_kernel(top: u64, function: extern "C" fn() -> !) -> u64 {
    // SAFETY: the caller's promise. `kernel_start` begins with rsp == top, so its calls push below an aligned address.
    unsafe { prepare(top, kernel_start, function as *const () as u64) }
}

/// Makes an unused stack return to user mode with `frame`. Returns its stack pointer.
///
/// # Safety
/// As `prepare_kernel`.
pub(crate) unsafe fn prepare_user(top: u64, frame: &TrapFrame) -> u64 {
    let at = top - FRAME_BYTES as u64;
    // SAFETY: the caller's promise.
    unsafe {
        (at as *mut TrapFrame).write(*frame);
        prepare(at, user_start, 0)
    }
}
