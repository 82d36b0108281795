//! The floating-point and vector state of a program: saved when its task leaves a CPU, restored when it comes back.
//!
//! The kernel itself is compiled without these registers, so they keep the program's values through every entry; only a
//! switch to another program's task must exchange them. The layout is XSAVE's standard form (FXSAVE's on a CPU without
//! it), which is also what a signal frame holds.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::registers::{self, cpuid};

/// States the kernel keeps: x87, SSE, AVX, the three parts of AVX-512, PKRU.
const SUPPORTED: u64 = 0b111 | 0b111 << 5 | 1 << 9;
/// Bytes of the part that FXSAVE defines, and of XSAVE's header behind it.
const LEGACY_BYTES: usize = 512;
const HEADER_BYTES: usize = 64;
/// Offset of the control and status register of SSE, and of the mask of its writable bits.
const CONTROL_OFFSET: usize = 24;
const CONTROL_MASK: u32 = 0xffff;

/// The enabled states (0: no XSAVE) and the bytes they take. The same on all CPUs; set by the boot CPU.
static ENABLED: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU32 = AtomicU32::new(LEGACY_BYTES as u32);

/// Turns the unit on, on the running CPU. Called on each CPU before user mode.
pub(crate) fn enable_on_this_cpu() {
    // SAFETY: MP on, EM and TS off: the unit answers without traps. OSFXSR, OSXMMEXCPT exist on every 64-bit CPU.
    unsafe {
        registers::set_control_0(registers::control_0() & !(1 << 2 | 1 << 3) | 1 << 1);
        registers::set_control_4(registers::control_4() | 1 << 9 | 1 << 10);
    }
    if cpuid(1, 0).ecx & 1 << 26 != 0 {
        let offered = cpuid(0xd, 0);
        let mut states = (u64::from(offered.edx) << 32 | u64::from(offered.eax)) & SUPPORTED;
        if states & 0b1110_0000 != 0b1110_0000 {
            states &= !0b1110_0000; // the parts of AVX-512 come together or not at all
        }
        // SAFETY: CPUID says that XSAVE exists and offers these states.
        unsafe {
            registers::set_control_4(registers::control_4() | 1 << 18);
            registers::set_extended_control_0(states);
        }
        ENABLED.store(states, Ordering::Relaxed);
        BYTES.store(cpuid(0xd, 0).ebx, Ordering::Relaxed);
    }
    // SAFETY: resets the unit to its initial state; no program's state is loaded yet.
    unsafe { asm!("fninit", options(nomem, nostack)) }
}

/// The states that are kept, as XCR0 has them; 0 without XSAVE.
pub(crate) fn enabled_states() -> u64 {
    ENABLED.load(Ordering::Relaxed)
}

/// Bytes of one saved state.
pub(crate) fn state_bytes() -> usize {
    BYTES.load(Ordering::Relaxed) as usize
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u8; 64]);

/// One program's saved state.
#[derive(Clone)]
pub(crate) struct FpuState {
    area: Vec<Block>,
}

impl FpuState {
    /// The state in which a program starts.
    pub(crate) fn new() -> Self {
        let mut area = alloc::vec![Block([0; 64]); state_bytes().div_ceil(64)];
        area[0].0[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        area[0].0[CONTROL_OFFSET..CONTROL_OFFSET + 4].copy_from_slice(&0x1f80_u32.to_le_bytes());
        area[0].0[CONTROL_OFFSET + 4..CONTROL_OFFSET + 8].copy_from_slice(&CONTROL_MASK.to_le_bytes());
        let mut state = Self { area };
        if enabled_states() != 0 {
            // x87 and SSE hold the values above; all other states are in their initial form.
            state.bytes_mut()[LEGACY_BYTES] = 0b11;
        }
        state
    }

    /// The saved bytes, as a signal frame shows them.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the blocks are plain bytes in a row.
        unsafe { core::slice::from_raw_parts(self.area.as_ptr().cast(), state_bytes()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.area.as_mut_ptr().cast(), state_bytes()) }
    }

    /// Takes over bytes that a program may have changed; what the CPU would refuse to load is masked out.
    /// Shorter input leaves the rest in its initial form.
    pub(crate) fn set_bytes(&mut self, from: &[u8]) {
        let states = enabled_states();
        *self = Self::new();
        let bytes = self.bytes_mut();
        let count = from.len().min(bytes.len());
        bytes[..count].copy_from_slice(&from[..count]);
        let control = u32::from_le_bytes(bytes[CONTROL_OFFSET..CONTROL_OFFSET + 4].try_into().expect("four bytes"));
        bytes[CONTROL_OFFSET..CONTROL_OFFSET + 4].copy_from_slice(&(control & CONTROL_MASK).to_le_bytes());
        if states != 0 {
            let header = &mut bytes[LEGACY_BYTES..LEGACY_BYTES + HEADER_BYTES];
            let present = u64::from_le_bytes(header[..8].try_into().expect("eight bytes")) & states;
            header.fill(0);
            header[..8].copy_from_slice(&present.to_le_bytes());
        }
    }

    /// Saves the running CPU's state here.
    pub(crate) fn save(&mut self) {
        let area = self.area.as_mut_ptr();
        let states = enabled_states();
        // SAFETY: the area has the size that the CPU reported for the enabled states and is aligned to 64 bytes.
        unsafe {
            if states != 0 {
                asm!("xsave64 [{}]", in(reg) area, in("eax") states as u32, in("edx") (states >> 32) as u32, options(nostack));
            } else {
                asm!("fxsave64 [{}]", in(reg) area, options(nostack));
            }
        }
    }

    /// Loads this state into the running CPU.
    pub(crate) fn restore(&self) {
        let area = self.area.as_ptr();
        let states = enabled_states();
        // SAFETY: the area was written by `save` or made acceptable by `new` and `set_bytes`, so the load cannot fault.
        unsafe {
            if states != 0 {
                asm!("xrstor64 [{}]", in(reg) area, in("eax") states as u32, in("edx") (states >> 32) as u32, options(readonly, nostack));
            } else {
                asm!("fxrstor64 [{}]", in(reg) area, options(readonly, nostack));
            }
        }
    }
}
