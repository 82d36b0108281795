//! The first instructions: from the 32-bit state in which a PVH loader enters to Rust in the high half.
//!
//! The loader jumps to `pvh_start` in protected mode without paging, with the physical address of `hvm_start_info` in
//! `ebx`. The code fills temporary page tables: the lowest 4 GiB by 2 MiB pages at address 0, at the direct map
//! and (the first 2 GiB) at the kernel's link address. They serve until `boot::map` has built the final ones, and
//! again for a moment on each further CPU (`boot::trampoline`), which needs the identity part while it turns paging on.
#![allow(unsafe_code)]

use core::arch::global_asm;

/// Bytes of the stack on which the boot CPU runs until it has become that CPU's idle task.
const BOOT_STACK_BYTES: usize = 32 * 1024;

global_asm!(
    r#"
    .pushsection .note.pvh, "a", @note
    .balign 4
    .long 4, 4, 18                     # name bytes, description bytes, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long pvh_start - 0xffffffff80000000
    .popsection

    .pushsection .bss.boot, "aw", @nobits
    .balign 4096
    .globl boot_root
boot_root:        .skip 4096
boot_upper_low:   .skip 4096
boot_upper_high:  .skip 4096
boot_directories: .skip 4 * 4096
    .balign 16
boot_stack:       .skip {stack}
boot_stack_top:
    .popsection

    .pushsection .rodata.boot, "a"
    .balign 8
    .globl boot_segments
boot_segments:
    .quad 0
    .quad 0x00af9a000000ffff           # 0x08: 64-bit code
    .quad 0x00cf92000000ffff           # 0x10: data
    .quad 0x00cf9a000000ffff           # 0x18: 32-bit code
boot_segments_end:
boot_segments_pointer:
    .word boot_segments_end - boot_segments - 1
    .long boot_segments - 0xffffffff80000000
    .popsection

    .pushsection .boot.text, "ax"
    .code32
    .globl pvh_start
pvh_start:
    cli
    cld
    movl %ebx, %ebp

    movl $(boot_directories - 0xffffffff80000000), %edi
    movl $0x83, %eax                   # present, writable, 2 MiB
    movl $2048, %ecx
1:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    decl %ecx
    jnz 1b

    movl $(boot_upper_low - 0xffffffff80000000), %edi
    movl $(boot_directories - 0xffffffff80000000 + 3), %eax
    movl $4, %ecx
2:  movl %eax, (%edi)
    addl $4096, %eax
    addl $8, %edi
    decl %ecx
    jnz 2b

    movl $(boot_directories - 0xffffffff80000000 + 3), %eax
    movl %eax, boot_upper_high - 0xffffffff80000000 + 510*8
    addl $4096, %eax
    movl %eax, boot_upper_high - 0xffffffff80000000 + 511*8

    movl $(boot_upper_low - 0xffffffff80000000 + 3), %eax
    movl %eax, boot_root - 0xffffffff80000000
    movl %eax, boot_root - 0xffffffff80000000 + 256*8
    movl $(boot_upper_high - 0xffffffff80000000 + 3), %eax
    movl %eax, boot_root - 0xffffffff80000000 + 511*8

    movl $0x20, %eax                   # CR4.PAE
    movl %eax, %cr4
    movl $(boot_root - 0xffffffff80000000), %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx             # EFER: SCE, LME, NXE
    rdmsr
    orl $0x901, %eax
    wrmsr
    movl $0x80010033, %eax             # CR0: PG, WP, NE, ET, MP, PE
    movl %eax, %cr0
    lgdt boot_segments_pointer - 0xffffffff80000000
    ljmp $0x08, $(1f - 0xffffffff80000000)

    .code64
1:  movabsq $2f, %rax
    jmp *%rax
2:  movl $0x10, %eax
    movl %eax, %ss
    movl %eax, %ds
    movl %eax, %es
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movabsq $boot_stack_top, %rsp
    movl %ebp, %edi
    xorl %ebp, %ebp
    call {start}
    ud2
    .popsection
    "#,
    stack = const BOOT_STACK_BYTES,
    start = sym super::start,
    options(att_syntax)
);

unsafe extern "C" {
    static boot_root: u8;
}

/// Physical address of the temporary root, for the moment in which another CPU turns paging on.
pub(super) fn temporary_root() -> u64 {
    &raw const boot_root as u64 - crate::arch::layout::KERNEL_BASE
}
