//! Starting the other CPUs, all at once.
//!
//! One broadcast resets them and one starts them, at a page below 1 MiB. Each finds out who it is from its interrupt controller's
//! identifier, takes the stack prepared for it and becomes its idle task. A CPU that is not in the table, or beyond
//! the capacity, sleeps. A start message that came too early is lost, so it is repeated until everyone has answered.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::cell::UnsafeCell;

use super::entry::temporary_root;
use super::firmware::Processors;
use super::map;
use crate::arch::layout::{KERNEL_BASE, direct};
use crate::arch::{apic, registers};
use crate::cpu::{self, MAX_CPUS};
use crate::task::{self, KernelStack};
use crate::time;

/// Physical address of the page where the CPUs start.
const START_PAGE: u64 = 0x8000;
/// How long to wait for an answer before the start message is repeated, and before the boot goes on without.
const REPEAT_AFTER: u64 = 2_000_000;
const GIVE_UP_AFTER: u64 = 10 * time::SECOND;
const STACK_BYTES: usize = 16 * 1024;

/// What the starting CPUs read: who they are and where their stack is. The start code knows the layout.
#[repr(C)]
struct Places {
    temporary_root: u64,
    kernel_root: u64,
    count: u64,
    identifiers: [u32; MAX_CPUS],
    stacks: [u64; MAX_CPUS],
}

#[repr(C)]
struct Shared(UnsafeCell<Places>);
// SAFETY: written by the boot CPU before the others start, read by them after.
unsafe impl Sync for Shared {}

static PLACES: Shared = Shared(UnsafeCell::new(Places {
    temporary_root: 0,
    kernel_root: 0,
    count: 0,
    identifiers: [0; MAX_CPUS],
    stacks: [0; MAX_CPUS],
}));

global_asm!(
    r#"
    .pushsection .rodata.trampoline, "a"
    .code16
    .globl trampoline, trampoline_end
trampoline:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl {page} + trampoline_segments - trampoline
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x18, $({page} + 1f - trampoline)
    .code32
1:  movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $0x20, %eax                   # CR4.PAE
    movl %eax, %cr4
    movl {places} - {base}, %eax       # the temporary root
    movl %eax, %cr3
    movl $0xc0000080, %ecx             # EFER: SCE, LME, NXE
    rdmsr
    orl $0x901, %eax
    wrmsr
    movl $0x80010033, %eax             # CR0: PG, WP, NE, ET, MP, PE
    movl %eax, %cr0
    ljmp $0x08, $(start_in_long_mode - {base})
    .balign 8
trampoline_segments:
    .word 31
    .long boot_segments - {base}
trampoline_end:
    .popsection

    .pushsection .boot.text, "ax"
    .code64
start_in_long_mode:
    movabsq $1f, %rax
    jmp *%rax
1:  movq {places} + 8(%rip), %rax      # the final root
    movq %rax, %cr3
    xorl %eax, %eax
    cpuid
    cmpl $0xb, %eax
    jb 2f
    movl $0xb, %eax
    xorl %ecx, %ecx
    cpuid
    testl %ebx, %ebx
    jnz 3f
2:  movl $1, %eax
    cpuid
    shrl $24, %ebx
    movl %ebx, %edx
3:  xorl %edi, %edi                    # edx: the identifier; edi: the index
4:  cmpq {places} + 16(%rip), %rdi
    jae 6f
    leaq {places} + 24(%rip), %rsi
    cmpl %edx, (%rsi, %rdi, 4)
    je 5f
    incl %edi
    jmp 4b
5:  leaq {places} + 24 + 4 * {most}(%rip), %rsi
    movq (%rsi, %rdi, 8), %rsp
    xorl %ebp, %ebp
    call {arrive}
    ud2
6:  cli
    hlt
    jmp 6b
    .popsection
    "#,
    page = const START_PAGE,
    base = const KERNEL_BASE,
    most = const MAX_CPUS,
    places = sym PLACES,
    arrive = sym arrive,
    options(att_syntax)
);

unsafe extern "C" {
    static trampoline: u8;
    static trampoline_end: u8;
}

/// Starts all CPUs but this one and waits until they take part.
pub(super) fn start_others(processors: &Processors) {
    let identifiers = processors.identifiers();
    if identifiers.len() < 2 {
        return;
    }
    prepare_places(identifiers);
    copy_start_page();
    apic::send_reset_to_others();
    let begin = time::now();
    let mut repeat = begin;
    while cpu::count() < identifiers.len() {
        let now = time::now();
        if now >= repeat {
            apic::send_startup_to_others((START_PAGE >> 12) as u8);
            repeat = now + REPEAT_AFTER;
        }
        if now - begin > GIVE_UP_AFTER {
            log::warn!("{} of {} CPUs did not start", identifiers.len() - cpu::count(), identifiers.len());
            return;
        }
        core::hint::spin_loop();
    }
}

fn prepare_places(identifiers: &[u32]) {
    // SAFETY: the other CPUs have not been started.
    let places = unsafe { &mut *PLACES.0.get() };
    places.temporary_root = temporary_root();
    places.kernel_root = map::kernel_root();
    for stack in &mut places.stacks[1..identifiers.len()] {
        *stack = KernelStack::allocate(STACK_BYTES).leak();
    }
    places.identifiers[..identifiers.len()].copy_from_slice(identifiers);
    places.count = identifiers.len() as u64;
}

fn copy_start_page() {
    let (from, end) = (&raw const trampoline, &raw const trampoline_end);
    // SAFETY: the page lies in low memory, which nothing else uses any more: the loader's structures have been copied.
    unsafe { core::ptr::copy_nonoverlapping(from, direct(START_PAGE) as *mut u8, end as usize - from as usize) }
}

/// First Rust code of another CPU.
extern "C" fn arrive(index: u64) -> ! {
    cpu::adopt(index as usize);
    registers::disable_interrupts();
    // SAFETY: the boot CPU wrote it before it started this one, and writes it no more.
    cpu::initialise(unsafe { (*PLACES.0.get()).count } as usize);
    task::become_idle();
    cpu::set_online();
    task::run_idle()
}
