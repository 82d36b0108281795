//! Whose processor time it was: a program's own, or the kernel's on its behalf.
//!
//! How long a task has run is exact, from one switch to the next (`scheduler`). How much of that it spent in the kernel is
//! measured from the beginning to the end of calls; the rest is user time. Two clock readings for every call would be a
//! large part of an empty one, so there are two kinds of calls:
//!
//! - *Measured*: what can last long (memory, copying, processes, files' ends) reads the clock twice.
//! - *Sampled*: of everything else, and of page faults, each task's every 61st is measured and counts 61 times. Its error is
//!   that of a few short calls, far below the scheduler's tick by which Linux samples.
//!
//! Interrupts count for what they interrupt, as on Linux. A sleep within a call counts nothing: the clock here is the task's own
//! running time, and every switch brings the account up to date, so that a CPU's share is its own too.
//!
//! A sample may say more than was left over, so what was once reported as user time is never taken back: neither figure runs
//! backwards.

#![allow(unsafe_code)]

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Task;
use super::scheduler::{current_task, running_time};
use crate::cpu::{Aligned, Cpu, MAX_CPUS, PerCpu};

/// One call in so many is measured. A prime, so that it meets every call of a program's loop.
const SAMPLE: u32 = 61;
/// Bytes that are copied, mapped or unmapped in a short time.
const BRIEF: u64 = 0x1_0000;
/// Outside of what is measured.
const OUTSIDE: u64 = u64::MAX;

/// Processor time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    pub(crate) user: u64,
    pub(crate) system: u64,
}

impl ProcessorTime {
    /// What was spent after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// A task's account.
pub(super) struct Account {
    /// Calls until the next that is measured.
    left: AtomicU32,
    /// What the call that is being measured stands for.
    weight: AtomicU32,
    /// The task's running time up to which `system` is right; `OUTSIDE` when nothing is being measured.
    entered: AtomicU64,
    system: AtomicU64,
    /// The most user time that anybody was told.
    told: AtomicU64,
}

impl Account {
    pub(super) const fn new() -> Self {
        Self {
            // In the middle, so that a program of few calls is neither always nor never measured too high.
            left: AtomicU32::new(SAMPLE / 2),
            weight: AtomicU32::new(1),
            entered: AtomicU64::new(OUTSIDE),
            system: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// Adds what of a measured call has passed at a task's running time `ran`. On the task's own CPU.
    pub(super) fn advance(&self, ran: u64) {
        if self.entered.load(Ordering::Relaxed) != OUTSIDE {
            self.add(ran);
            self.entered.store(ran, Ordering::Relaxed);
        }
    }

    fn add(&self, ran: u64) {
        let passed = self.open(ran);
        self.system.fetch_add(passed, Ordering::Relaxed);
        SYSTEM.here().0.fetch_add(passed, Ordering::Relaxed);
    }

    /// What of a call that is being measured is not yet in `system`.
    fn open(&self, ran: u64) -> u64 {
        match self.entered.load(Ordering::Relaxed) {
            OUTSIDE => 0,
            entered => ran.saturating_sub(entered) * u64::from(self.weight.load(Ordering::Relaxed)),
        }
    }

    fn begin(&self, weight: u32) {
        self.weight.store(weight, Ordering::Relaxed);
        self.entered.store(running_time(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.add(running_time());
        self.entered.store(OUTSIDE, Ordering::Relaxed);
    }

    /// Splits a task's running time.
    pub(super) fn split(&self, ran: u64) -> ProcessorTime {
        split(ran, self.system.load(Ordering::Relaxed) + self.open(ran), &self.told)
    }
}

/// System time of a CPU, and the most of its user time that anybody was told.
struct Share(AtomicU64, AtomicU64);

static SYSTEM: PerCpu<Share> =
    PerCpu::new([const { Aligned(Share(AtomicU64::new(0), AtomicU64::new(0))) }; MAX_CPUS]);

/// Splits the busy time of a CPU.
pub(super) fn split_of_cpu(cpu: usize, busy: u64) -> ProcessorTime {
    let Share(system, told) = SYSTEM.of(cpu);
    split(busy, system.load(Ordering::Relaxed), told)
}

fn split(all: u64, system: u64, told: &AtomicU64) -> ProcessorTime {
    let user = all.saturating_sub(system);
    let user = told.fetch_max(user, Ordering::Relaxed).max(user).min(all);
    ProcessorTime { user, system: all - user }
}

/// Counts a call or fault that is short by nature, and says whether it is one to measure with [`sampled`]. It stands on every way
/// into the kernel, so it is three instructions.
#[inline(always)]
pub(crate) fn is_sampled() -> bool {
    // SAFETY: GS points at this CPU's entry, whose `current` is the running task. Only the task itself writes its count, in one
    // instruction, so an interrupt or a change of CPUs between the two does no harm: the pointer stays the running task's.
    unsafe {
        asm!(
            "mov {task}, gs:[{current}]",
            "dec dword ptr [{task} + {left}]",
            "jz {now}",
            task = out(reg) _,
            current = const offset_of!(Cpu, current),
            left = const offset_of!(Task, account.left),
            now = label { return true },
            options(nostack),
        );
    }
    false
}

/// Measures a call that stands for all that were not.
#[cold]
pub(crate) fn sampled<R>(call: impl FnOnce() -> R) -> R {
    let account = &current_task().account;
    account.left.store(SAMPLE, Ordering::Relaxed);
    account.begin(SAMPLE);
    let result = call();
    account.end();
    result
}

/// Measures a call that can last long. Within a sampled one it takes over: that one would stand for calls unlike it.
pub(crate) fn measured<R>(call: impl FnOnce() -> R) -> R {
    let account = &current_task().account;
    account.begin(1);
    let result = call();
    account.end();
    result
}

/// Measures a call about this many bytes if they are many.
pub(crate) fn measured_if_long<R>(bytes: u64, call: impl FnOnce() -> R) -> R {
    if bytes > BRIEF { measured(call) } else { call() }
}

/// Measures the rest of the running task's life.
pub(crate) fn measure_from_here() {
    let account = &current_task().account;
    account.advance(running_time());
    account.begin(1);
}
