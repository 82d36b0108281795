//! The part of a program's registers that stays in the CPU while the kernel runs: floating point, FS base and GS base.
//!
//! It is saved when the task leaves a CPU and loaded when it comes back. A task that comes back to the CPU it left, with no
//! other program's task in between, finds its floating-point state still there.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::FpuState;
use crate::arch::registers::{disable_interrupts, enable_interrupts, interrupts_enabled, msr, read_msr, write_msr};
use crate::cpu::{self, Aligned, MAX_CPUS, PerCpu};

/// Whose floating-point state each CPU holds, by `UserState::number`; 0 for nobody's.
static OWNERS: PerCpu<AtomicU64> = PerCpu::new([const { Aligned(AtomicU64::new(0)) }; MAX_CPUS]);
const NOWHERE: u64 = u64::MAX;
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

pub(super) struct UserState {
    number: u64,
    fpu: UnsafeCell<FpuState>,
    /// The CPU whose registers may still hold `fpu`.
    held_by: AtomicU64,
    fs_base: AtomicU64,
    gs_base: AtomicU64,
}

// SAFETY: `fpu` is touched by the task's creator before it starts, then only by the CPU that runs the task or is just
// switching from or to it; the run queue's lock orders one CPU's use before the next one's.
unsafe impl Sync for UserState {}

impl UserState {
    pub(super) fn new() -> Self {
        Self {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            fpu: UnsafeCell::new(FpuState::new()),
            held_by: AtomicU64::new(NOWHERE),
            fs_base: AtomicU64::new(0),
            gs_base: AtomicU64::new(0),
        }
    }

    /// Saves the CPU's registers: the task is leaving it. Interrupts are off.
    pub(super) fn save(&self) {
        // SAFETY: see above; we are the CPU that runs the task.
        unsafe { &mut *self.fpu.get() }.save();
        self.held_by.store(cpu::index() as u64, Ordering::Relaxed);
        self.fs_base.store(read_msr(msr::FS_BASE), Ordering::Relaxed);
        self.gs_base.store(read_msr(msr::KERNEL_GS_BASE), Ordering::Relaxed);
    }

    /// Loads the CPU's registers: the task is coming to it. Interrupts are off.
    pub(super) fn load(&self) {
        let owner = OWNERS.here();
        let still_here = owner.load(Ordering::Relaxed) == self.number
            && self.held_by.load(Ordering::Relaxed) == cpu::index() as u64;
        if !still_here {
            // SAFETY: see above; we are the CPU that is about to run the task.
            unsafe { &*self.fpu.get() }.restore();
            owner.store(self.number, Ordering::Relaxed);
        }
        // SAFETY: user-mode bases; the kernel uses neither (its own GS base is the other register).
        unsafe {
            write_msr(msr::FS_BASE, self.fs_base.load(Ordering::Relaxed));
            write_msr(msr::KERNEL_GS_BASE, self.gs_base.load(Ordering::Relaxed));
        }
    }

    /// Copies the running task's state (`running`) into this one, whose task has not started.
    pub(super) fn copy_running(&self, running: &Self) {
        running.with_running_fpu(|fpu| {
            // SAFETY: our task has not started, so its creator, who calls this, is the only user.
            unsafe { *self.fpu.get() = fpu.clone() };
        });
        self.fs_base.store(read_msr(msr::FS_BASE), Ordering::Relaxed);
        self.gs_base.store(read_msr(msr::KERNEL_GS_BASE), Ordering::Relaxed);
    }

    /// Looks at or changes the state of the running task.
    pub(super) fn with_running_fpu<R>(&self, work: impl FnOnce(&mut FpuState) -> R) -> R {
        // SAFETY: ours is the running task, and the kernel does not switch tasks inside; `work` must not sleep.
        let fpu = unsafe { &mut *self.fpu.get() };
        fpu.save();
        let result = work(fpu);
        fpu.restore();
        result
    }

    pub(super) fn fs_base(&self, running: bool) -> u64 {
        if running { read_msr(msr::FS_BASE) } else { self.fs_base.load(Ordering::Relaxed) }
    }

    pub(super) fn gs_base(&self, running: bool) -> u64 {
        if running { read_msr(msr::KERNEL_GS_BASE) } else { self.gs_base.load(Ordering::Relaxed) }
    }

    pub(super) fn set_fs_base(&self, base: u64, running: bool) {
        self.set(&self.fs_base, msr::FS_BASE, base, running);
    }

    pub(super) fn set_gs_base(&self, base: u64, running: bool) {
        self.set(&self.gs_base, msr::KERNEL_GS_BASE, base, running);
    }

    fn set(&self, saved: &AtomicU64, register: u32, base: u64, running: bool) {
        assert!(base < 1 << 47, "a segment base of a program is in the user half");
        let enabled = interrupts_enabled();
        disable_interrupts();
        saved.store(base, Ordering::Relaxed);
        if running {
            // SAFETY: a user-mode base, and a canonical address.
            unsafe { write_msr(register, base) }
        }
        if enabled {
            enable_interrupts();
        }
    }
}
