//! Ways into the kernel and back: system calls, interrupts, exceptions.
//!
//! Every way in builds a full `TrapFrame` and calls Rust; every way back to user mode goes through one check of the
//! task's work flags with interrupts off, so that no work can be posted between the check and the return.
//!
//! - *System call*: GS is swapped, the stack is the task's own, interrupts are on while Rust runs. SYSRET is used when it
//!   restores exactly what the frame says (return address and flags where the instruction itself put them, address in the
//!   lower half, no single-stepping, nothing that needs RESUME); otherwise IRET does.
//! - *Interrupt or exception*: GS is swapped only if user mode was interrupted. Rust runs with interrupts off and may turn
//!   them on (faults from user mode do).
//! - *Own-stack exceptions* (NMI, double fault, machine check): they may strike between entry and SWAPGS, so the
//!   selector does not tell whose GS is loaded. The CPU's own pointer lies at the top of its interrupt stack; the entry
//!   loads it and puts back what it found.
//!
//! Every crossing between user mode and kernel advances the CPU's count (`coherence::Crossings`), by which others know that
//! they need not interrupt it: on the way in by a plain increment, which no CPU of this architecture lets pass what user mode
//! did before (for interrupts and exceptions `interrupt::on_interrupt` makes it), and on the way out by a locked one, which is the
//! full fence that `Coherence::enter_user` asks for. (SYSRET is no fence.) If that one's result is negative, the CPU has missed a flush
//! in the kernel and makes up for it. Interrupts are off at both.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::mem::offset_of;

use super::trap_frame::{SYSTEM_CALL, TrapFrame, USER_CODE, USER_DATA};
use super::registers::{flags, msr};
use crate::cpu::{Cpu, INTERRUPT_STACK_BYTES};
use crate::task::Task;

global_asm!(
    r#"
    .macro save_registers
    push rax
    push rcx
    push rdx
    push rbx
    push rbp
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    .endm

    .macro restore_registers
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rbp
    pop rbx
    pop rdx
    pop rcx
    pop rax
    .endm

    .text
    .globl interrupt_entry, own_stack_entry, user_return
    .balign 64
    .globl system_call_entry
system_call_entry:
    swapgs
    inc qword ptr gs:[{crossings}]
    mov gs:[{user_stack}], rsp
    mov rsp, gs:[{stack_top}]
    push {user_data}
    push qword ptr gs:[{user_stack}]
    push r11
    push {user_code}
    push rcx
    push rax
    push {system_call}
    save_registers
    mov rdi, rsp
    sti
    call {on_system_call}
    cli
    mov rax, gs:[{current}]
    cmp dword ptr [rax + {work}], 0
    jne user_return
    mov rcx, [rsp + {rip}]
    cmp rcx, [rsp + {rcx}]
    jne user_return
    mov r11, [rsp + {rflags}]
    cmp r11, [rsp + {r11}]
    jne user_return
    test r11d, {not_by_sysret}
    jnz user_return
    shr rcx, 47
    jnz user_return
    lock inc qword ptr gs:[{crossings}]
    js 2f
1:  restore_registers
    mov rsp, [rsp + 40]
    swapgs
    sysretq
2:  call {catch_up}
    jmp 1b

    .balign 16
    .globl user_return
user_return:                           # interrupts off, rsp at the frame
    mov rdi, rsp
    call {before_user}
    lock inc qword ptr gs:[{crossings}]
    js 2f
1:  restore_registers
    add rsp, 16
    swapgs
    iretq
2:  call {catch_up}
    jmp 1b

    .balign 16
interrupt_entry:
    cld
    test byte ptr [rsp + 24], 3
    jz 1f
    swapgs
    save_registers
    mov rdi, rsp
    call {on_interrupt}
    cli
    jmp user_return
1:  save_registers
    mov rdi, rsp
    call {on_interrupt}
    restore_registers
    add rsp, 16
    iretq

    .balign 16
own_stack_entry:
    cld
    save_registers
    mov ecx, {gs_base}
    rdmsr
    shl rdx, 32
    or rax, rdx
    mov rbx, rax
    mov rax, rsp
    or rax, {interrupt_stack} - 1
    mov rax, [rax - 7]
    mov rdx, rax
    shr rdx, 32
    wrmsr
    mov rdi, rsp
    call {on_own_stack}
    mov ecx, {gs_base}
    mov rax, rbx
    mov rdx, rbx
    shr rdx, 32
    wrmsr
    restore_registers
    add rsp, 16
    iretq

    "#,
    user_stack = const offset_of!(Cpu, user_stack),
    stack_top = const offset_of!(Cpu, stack_top),
    current = const offset_of!(Cpu, current),
    work = const offset_of!(Task, work),
    crossings = const offset_of!(Cpu, crossings),
    rip = const offset_of!(TrapFrame, rip),
    rcx = const offset_of!(TrapFrame, rcx),
    rflags = const offset_of!(TrapFrame, rflags),
    r11 = const offset_of!(TrapFrame, r11),
    not_by_sysret = const flags::TRAP | flags::RESUME,
    user_code = const USER_CODE,
    user_data = const USER_DATA,
    system_call = const SYSTEM_CALL,
    gs_base = const msr::GS_BASE,
    interrupt_stack = const INTERRUPT_STACK_BYTES,
    on_system_call = sym crate::interrupt::on_system_call,
    on_interrupt = sym crate::interrupt::on_interrupt,
    on_own_stack = sym crate::interrupt::on_own_stack,
    catch_up = sym crate::interrupt::shootdown::catch_up,
    before_user = sym crate::interrupt::before_user,
);

// One stub for each vector, 16 bytes apart: make the frame uniform (a zero where the CPU pushes no error code), push the
// vector, go on.
global_asm!(
    r#"
    .text
    .globl interrupt_stubs
    .balign 16
interrupt_stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if vector != 8 && (vector < 10 || vector > 14) && vector != 17 && vector != 21 && vector != 29 && vector != 30
    pushq $0
    .endif
    pushq $vector
    .if vector == 2 || vector == 8 || vector == 18
    jmp own_stack_entry
    .else
    jmp interrupt_entry
    .endif
    .set vector, vector + 1
    .endr
    "#,
    options(att_syntax)
);

unsafe extern "C" {
    fn system_call_entry();
    static interrupt_stubs: u8;
}

/// Address of the system-call entry, for LSTAR.
pub(crate) fn system_call() -> u64 {
    system_call_entry as *const () as u64
}

/// Address of a vector's entry code.
pub(crate) fn interrupt(vector: u8) -> u64 {
    &raw const interrupt_stubs as u64 + u64::from(vector) * 16
}

/// Clears the flag with which user mode could have left the kernel's access to user memory open. The CPU must have SMAP.
pub(crate) fn forbid_user_access() {
    // SAFETY: takes rights away only.
    unsafe { core::arch::asm!("clac", options(nostack)) }
}
