//! The processor's own registers: control registers, model-specific registers, CPUID, the interrupt flag, the counter.
#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, CpuidResult, _rdtsc};

/// Model-specific registers the kernel uses.
pub(crate) mod msr {
    pub(crate) const APIC_BASE: u32 = 0x1b;
    pub(crate) const STAR: u32 = 0xc000_0081;
    pub(crate) const LSTAR: u32 = 0xc000_0082;
    pub(crate) const SYSCALL_MASK: u32 = 0xc000_0084;
    pub(crate) const FS_BASE: u32 = 0xc000_0100;
    pub(crate) const GS_BASE: u32 = 0xc000_0101;
    pub(crate) const KERNEL_GS_BASE: u32 = 0xc000_0102;
}

/// Bits of the flags register.
pub(crate) mod flags {
    pub(crate) const TRAP: u64 = 1 << 8;
    pub(crate) const INTERRUPT: u64 = 1 << 9;
    pub(crate) const RESUME: u64 = 1 << 16;
    /// What a program may choose for itself: the arithmetic flags, trap, direction, resume, alignment check, identification.
    pub(crate) const USER: u64 = 0xcd5 | TRAP | RESUME | 1 << 18 | 1 << 21;
}

/// Reads a model-specific register. Panics by #GP if the CPU does not have it.
pub(crate) fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reading a register of the list above has no side effect on memory.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The value must keep the running code runnable (its segments, stack, translations and entry points).
pub(crate) unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// One leaf and sub-leaf of CPUID; all zero for a leaf beyond the CPU's last.
pub(crate) fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    let last = __cpuid_count(leaf & 0xffff_0000, 0).eax;
    if leaf > last && leaf & 0xffff_0000 != 0x4000_0000 {
        return CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
    }
    __cpuid_count(leaf, sub_leaf)
}

/// Bits of a physical address, as this CPU counts them. 36 if it does not say: none has less.
pub(crate) fn physical_address_bits() -> u32 {
    match cpuid(0x8000_0008, 0).eax & 0xff {
        0 => 36,
        bits => bits,
    }
}

/// The time-stamp counter, unordered against surrounding loads.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: every 64-bit CPU has the counter and the kernel may always read it.
    unsafe { _rdtsc() }
}

/// Whether this CPU accepts interrupts.
pub(crate) fn interrupts_enabled() -> bool {
    let value: u64;
    // SAFETY: pushes and pops one word of this stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) value, options(preserves_flags)) }
    value & flags::INTERRUPT != 0
}

/// Stops accepting interrupts on this CPU.
pub(crate) fn disable_interrupts() {
    // SAFETY: delays interrupts only. Not `nomem`: memory accesses must not move across it.
    unsafe { asm!("cli", options(nostack, preserves_flags)) }
}

/// Accepts interrupts on this CPU. The interrupt table must be loaded.
pub(crate) fn enable_interrupts() {
    // SAFETY: handlers are prepared for any point of code that runs with the flag set. Not `nomem`, as above.
    unsafe { asm!("sti", options(nostack, preserves_flags)) }
}

/// Accepts interrupts and sleeps until one comes, with nothing between the two.
pub(crate) fn enable_interrupts_and_halt() {
    // SAFETY: `sti` takes effect after the next instruction, so that no wake-up is lost before the `hlt`.
    unsafe { asm!("sti", "hlt", options(nostack, preserves_flags)) }
}

/// Sleeps for ever.
pub(crate) fn halt_forever() -> ! {
    loop {
        // SAFETY: nothing runs on this CPU any more.
        unsafe { asm!("cli", "hlt", options(nostack, preserves_flags)) }
    }
}

/// The faulting address of the last page fault.
pub(crate) fn fault_address() -> u64 {
    let value: u64;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// CR3: the root in use and its tag.
pub(crate) fn root() -> u64 {
    let value: u64;
    // SAFETY: reading CR3 has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Makes this CPU fetch instructions anew: writes CR2, with what it holds, as that serialises and does nothing else. Interrupts are off.
pub(crate) fn serialise() {
    // SAFETY: CR2 keeps its value; nothing can fault in between.
    unsafe { asm!("mov {0}, cr2", "mov cr2, {0}", out(reg) _, options(nostack, preserves_flags)) }
}

/// Loads CR3.
///
/// # Safety
/// The root must map the kernel as every root does, and its lower half must be owned by what this CPU is about to run.
pub(crate) unsafe fn set_root(value: u64) {
    // SAFETY: the caller's promise. Not `nomem`: this orders accesses through old and new translations.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Drops this CPU's translation of one page.
pub(crate) fn invalidate_page(address: u64) {
    // SAFETY: forgetting a translation is always allowed. Not `nomem`: later accesses must not move before it.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// CR0.
pub(crate) fn control_0() -> u64 {
    let value: u64;
    // SAFETY: reading CR0 has no effect.
    unsafe { asm!("mov {}, cr0", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes CR0.
///
/// # Safety
/// Paging, protection and write protection must stay on.
pub(crate) unsafe fn set_control_0(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// CR4.
pub(crate) fn control_4() -> u64 {
    let value: u64;
    // SAFETY: reading CR4 has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes CR4.
///
/// # Safety
/// Only features that CPUID reports may be set, and physical address extension must stay on.
pub(crate) unsafe fn set_control_4(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Writes the extended control register that says which states XSAVE keeps.
///
/// # Safety
/// CR4.OSXSAVE must be set and the value must be a combination that CPUID leaf 0xd reports.
pub(crate) unsafe fn set_extended_control_0(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("xsetbv", in("ecx") 0, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nomem, nostack, preserves_flags)) }
}

/// A hardware random number, if the CPU has one to give.
pub(crate) fn random() -> Option<u64> {
    if cpuid(1, 0).ecx & 1 << 30 == 0 {
        return None;
    }
    let (value, ok): (u64, u8);
    // SAFETY: the CPU has the instruction, as just asked.
    unsafe { asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) ok, options(nomem, nostack)) }
    (ok != 0).then_some(value)
}
