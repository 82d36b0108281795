//! Putting tasks into CPUs' queues: when they wake, when they are new, when another CPU has less to do, and when somebody changes
//! where or how they may run.
//!
//! Whoever calls `place` or `enqueue` owns the task: it is in no queue, runs nowhere, and its registers are saved.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::Ordering;

use super::class::Class;
use super::run_queue::weighted;
use super::scheduler::{NEVER, SCHEDULES, Schedule, WAKE_GRANULARITY, schedule, set_tick};
use super::{PARKED, Task, Work, placement};
use crate::cpu::{self, CpuSet};
use crate::interrupt::send_reschedule;
use crate::time;

/// For an idle CPU: takes a waiting task from the most loaded CPU. Interrupts are off. Returns whether one came.
pub(super) fn pull() -> bool {
    let here = cpu::index();
    let Some(from) = placement::most_loaded(cpu::online().without(here)) else { return false };
    let Some(task) = SCHEDULES.of(from).lock().queue.take_for(CpuSet::single(here)) else { return false };
    enqueue(task, here, How::Moved);
    true
}

/// Queues a task that `Task::wake` has just taken from its sleep.
pub(super) fn woken(task: &Task) {
    // Its CPU may still be saving its registers.
    drop(SCHEDULES.of(task.cpu()).lock());
    place(task.arc());
}

/// Queues a task that nobody else can reach, where it had better run.
pub(super) fn place(task: Arc<Task>) {
    let to = placement::choose(&task);
    enqueue(task, to, How::Woke);
}

/// Queues a new task.
pub(super) fn place_new(task: Arc<Task>) {
    let to = placement::choose_for_new(&task);
    enqueue(task, to, How::Woke);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Woke,
    Moved,
}

pub(super) fn enqueue(task: Arc<Task>, to: usize, how: How) {
    let mut schedule = SCHEDULES.of(to).lock();
    task.cpu.store(to as u32, Ordering::Relaxed);
    placement::claim(to);
    let urgent = match how {
        How::Woke => {
            schedule.queue.join(task.clone());
            is_more_urgent(&task, &schedule)
        }
        How::Moved => {
            schedule.queue.adopt(task);
            ptr::eq(schedule.current, schedule.idle)
        }
    };
    let running = usize::from(!ptr::eq(schedule.current, schedule.idle));
    placement::set_load(to, schedule.queue.len() + running);
    // SAFETY: the running task of a locked schedule has a reference to itself.
    let current = unsafe { &*schedule.current };
    if urgent {
        current.work.fetch_or(Work::RESCHEDULE.bits(), Ordering::SeqCst);
    }
    if to == cpu::index() {
        let now = time::now();
        set_tick(&mut schedule, current, now);
    }
    let needs_tick = schedule.slice_end == NEVER && running == 1;
    drop(schedule);
    // A remote CPU sets its own tick when it looks.
    if to != cpu::index() && (urgent || needs_tick) {
        send_reschedule(to);
    }
}

/// Whether a task that woke should have the CPU at once.
fn is_more_urgent(task: &Task, schedule: &Schedule) -> bool {
    if ptr::eq(schedule.current, schedule.idle) {
        return true;
    }
    // SAFETY: the running task of a locked schedule has a reference to itself.
    let current = unsafe { &*schedule.current };
    let (mine, theirs) = (task.class(), current.class());
    if mine.rank() != theirs.rank() {
        return mine.rank() < theirs.rank();
    }
    let running_for = time::now().saturating_sub(current.since.load(Ordering::Relaxed));
    let theirs_now = current.position.load(Ordering::Relaxed) + weighted(theirs, running_for);
    matches!(mine, Class::Normal { .. }) && task.position.load(Ordering::Relaxed) + WAKE_GRANULARITY < theirs_now
}

/// Brings a task that is running on another CPU into the kernel, to look at its work flags.
pub(super) fn kick(task: &Task) {
    let cpu = task.cpu();
    if cpu != cpu::index() && ptr::eq(SCHEDULES.of(cpu).lock().current, task) {
        send_reschedule(cpu);
    }
}

/// Moves a task whose affinity has changed, if it is where it may no longer be.
pub(super) fn enforce_affinity(task: &Task) {
    loop {
        let cpu = task.cpu();
        let mut schedule = SCHEDULES.of(cpu).lock();
        if task.cpu() != cpu {
            continue;
        }
        if placement::allowed(task).contains(cpu) {
            return;
        }
        if ptr::eq(schedule.current, task) {
            task.work.fetch_or(Work::RESCHEDULE.bits(), Ordering::SeqCst);
            drop(schedule);
            if cpu == cpu::index() { schedule_now_if_task() } else { send_reschedule(cpu) }
            return;
        }
        if let Some(task) = schedule.queue.remove(task) {
            drop(schedule);
            place(task);
            return;
        }
        if task.state.load(Ordering::SeqCst) == PARKED {
            return; // asleep: placed by the new affinity when it wakes
        }
        drop(schedule);
        crate::sync::relax(); // on its way between two queues
    }
}

fn schedule_now_if_task() {
    if !cpu::in_interrupt() {
        schedule();
    }
}

/// Changes a task's class; a queued one changes its place.
pub(super) fn set_class(task: &Task, class: Class) {
    let cpu = task.cpu();
    let mut schedule = SCHEDULES.of(cpu).lock();
    let queued = schedule.queue.remove(task);
    if task.class().is_real_time() != class.is_real_time() {
        // A turn is no run time, nor the other way round.
        task.position.store(0, Ordering::Relaxed);
    }
    task.class.store(class.to_bits(), Ordering::Relaxed);
    if let Some(queued) = queued {
        schedule.queue.join(queued);
        // SAFETY: the running task of a locked schedule has a reference to itself.
        let current = unsafe { &*schedule.current };
        current.work.fetch_or(Work::RESCHEDULE.bits(), Ordering::SeqCst);
        drop(schedule);
        if cpu != cpu::index() {
            send_reschedule(cpu);
        }
    }
}
