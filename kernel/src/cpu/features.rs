//! Which protections and conveniences the CPUs have, and turning them on.
//!
//! The boot CPU decides; the others are taken to be of the same kind, as every SMP machine we can run on is.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::registers::{self, cpuid};

const CR4_GLOBAL_PAGES: u64 = 1 << 7;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;
const CR4_PROTECTION_KEYS: u64 = 1 << 22;

static SMAP: AtomicBool = AtomicBool::new(false);
static FSGSBASE: AtomicBool = AtomicBool::new(false);

/// Turns on what the running CPU has: user-mode prevention (SMEP, SMAP, UMIP), global pages, FSGSBASE. No-execute and
/// write protection are on since the first instructions.
pub(crate) fn enable_on_this_cpu() {
    let basic = cpuid(1, 0);
    let extended = cpuid(7, 0);
    let mut control = registers::control_4() & !CR4_PROTECTION_KEYS;
    let wanted = [
        (basic.edx & 1 << 13, CR4_GLOBAL_PAGES),
        (extended.ecx & 1 << 2, CR4_UMIP),
        (extended.ebx & 1 << 0, CR4_FSGSBASE),
        (extended.ebx & 1 << 7, CR4_SMEP),
        (extended.ebx & 1 << 20, CR4_SMAP),
    ];
    for (present, bit) in wanted {
        if present != 0 {
            control |= bit;
        }
    }
    // SAFETY: only bits that CPUID reports; none of them changes how kernel code that obeys its own rules runs.
    unsafe { registers::set_control_4(control) }
    SMAP.store(control & CR4_SMAP != 0, Ordering::Relaxed);
    FSGSBASE.store(control & CR4_FSGSBASE != 0, Ordering::Relaxed);
}

/// Whether the kernel is kept from user memory by the CPU.
pub(crate) fn smap() -> bool {
    SMAP.load(Ordering::Relaxed)
}

/// Whether programs may write their FS and GS bases themselves (auxiliary vector, AT_HWCAP2 bit 1).
pub(crate) fn fsgsbase() -> bool {
    FSGSBASE.load(Ordering::Relaxed)
}
