//! Which CPU a task shall run on.
//!
//! A task that wakes goes to its last CPU if that is idle, else to any idle CPU, else back to its last CPU; balancing corrects
//! what that gets wrong. A CPU that becomes idle takes a waiting task from another; a busy CPU hands one over at its tick
//! when another has two fewer.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Task;
use crate::cpu::{self, Aligned, CpuSet, MAX_CPUS, PerCpu};

/// CPUs that run their idle task.
static IDLE: AtomicU64 = AtomicU64::new(0);
/// Tasks running on or waiting for each CPU, as last published by it.
static LOADS: PerCpu<AtomicUsize> = PerCpu::new([const { Aligned(AtomicUsize::new(0)) }; MAX_CPUS]);

/// Publishes whether this CPU is idle.
pub(super) fn set_idle(idle: bool) {
    let bit = 1 << cpu::index();
    let was = IDLE.load(Ordering::Relaxed) & bit != 0;
    if idle && !was {
        IDLE.fetch_or(bit, Ordering::SeqCst);
    } else if !idle && was {
        IDLE.fetch_and(!bit, Ordering::SeqCst);
    }
}

/// Keeps further tasks away from a CPU that has just been given one.
pub(super) fn claim(cpu: usize) {
    if IDLE.load(Ordering::Relaxed) & 1 << cpu != 0 {
        IDLE.fetch_and(!(1 << cpu), Ordering::SeqCst);
    }
}

/// CPUs that are idle.
pub(super) fn idle() -> CpuSet {
    CpuSet::from_bits(IDLE.load(Ordering::Relaxed))
}

/// Publishes a CPU's load; called with its queue locked.
pub(super) fn set_load(cpu: usize, tasks: usize) {
    LOADS.of(cpu).store(tasks, Ordering::Relaxed);
}

/// A CPU's load.
pub(super) fn load(cpu: usize) -> usize {
    LOADS.of(cpu).load(Ordering::Relaxed)
}

/// The CPUs a task may run on; all of them if none of its own is online.
pub(super) fn allowed(task: &Task) -> CpuSet {
    let allowed = task.affinity().and(cpu::online());
    if allowed.is_empty() { cpu::online() } else { allowed }
}

/// The CPU for a task that has become ready.
pub(super) fn choose(task: &Task) -> usize {
    let allowed = allowed(task);
    let last = task.cpu();
    let idle = idle().and(allowed);
    if idle.contains(last) || (idle.is_empty() && allowed.contains(last)) {
        return last;
    }
    next_from(idle, last).or_else(|| least_loaded(allowed)).unwrap_or(last)
}

/// The CPU for a new task: idle if there is one, else the least loaded.
pub(super) fn choose_for_new(task: &Task) -> usize {
    let allowed = allowed(task);
    let here = cpu::index();
    next_from(idle().and(allowed), here).or_else(|| least_loaded(allowed)).unwrap_or(here)
}

/// The member that follows `cpu` in a circle, so that tasks spread instead of piling up on the lowest.
fn next_from(set: CpuSet, cpu: usize) -> Option<usize> {
    let above = CpuSet::from_bits(set.bits() & u64::MAX.checked_shl(cpu as u32 + 1).unwrap_or(0));
    above.first().or(set.first())
}

/// The least loaded member; the lowest of several.
pub(super) fn least_loaded(set: CpuSet) -> Option<usize> {
    set.iter().min_by_key(|&cpu| load(cpu))
}

/// The CPU with the most tasks, if it has some that wait.
pub(super) fn most_loaded(set: CpuSet) -> Option<usize> {
    set.iter().filter(|&cpu| load(cpu) > 1).max_by_key(|&cpu| load(cpu))
}
