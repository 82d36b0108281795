//! The scheduler: one queue and one running task for each CPU.
//!
//! **Locks.** A CPU's state is behind its interrupt lock, which is held across the change of stacks: the task that arrives
//! releases what the task that left took. So whoever holds a CPU's lock and finds that a task is not its running
//! one knows that the task's registers are saved. No two of these locks are ever held together.
//!
//! **Waking.** A task on its way to sleep is SLEEPING until its CPU parks it, under the lock. Whoever finds it SLEEPING only
//! makes it RUNNABLE again, and it stays. Whoever changes it from PARKED to RUNNABLE owns it, waits for the lock once, so that its
//! registers are saved, and queues it.
//!
//! **Ticks.** A timer tick comes only while another task waits for the CPU; otherwise the CPU runs undisturbed, save for a rare
//! heartbeat (`interrupt::timer`), or halts.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::Ordering;

use lock_api::RawMutex as _;

use super::class::{Class, ROUND_ROBIN_SLICE};
use super::queueing::{How, enqueue, place, pull};
use super::run_queue::{RunQueue, weighted};
use super::{DEAD, KernelStack, PARKED, RUNNABLE, SLEEPING, Task, Work, loaded, placement};
use crate::arch::registers::{disable_interrupts, enable_interrupts, enable_interrupts_and_halt, interrupts_enabled};
use crate::arch::switch::switch_stack;
use crate::cpu::{self, Aligned, CpuSet, MAX_CPUS, PerCpu};
use crate::interrupt::timer;
use crate::sync::{InterruptLock, assert_none_held};
use crate::time;

/// How long a fair task runs before another has its turn, in nanoseconds.
const SLICE: u64 = 3_000_000;
/// How far ahead a running task must be before one that wakes takes the CPU from it.
pub(super) const WAKE_GRANULARITY: u64 = 1_000_000;
pub(super) const NEVER: u64 = u64::MAX;

pub(super) struct Schedule {
    pub(super) queue: RunQueue,
    /// The running task; null before the CPU takes part. Compared by anyone under the lock.
    pub(super) current: *const Task,
    pub(super) idle: *const Task,
    /// When the running task's turn ends; `NEVER` while nobody waits.
    pub(super) slice_end: u64,
    /// What the last switch left, for `arrived` to deal with.
    left: Option<(Arc<Task>, Left)>,
}

/// What becomes of a task that has just left the CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It must go to another CPU.
    Moves,
    /// It has ended.
    Ended,
}

// SAFETY: the pointers name tasks that live as long as they are used so: a running task has its own reference.
unsafe impl Send for Schedule {}

pub(super) static SCHEDULES: PerCpu<InterruptLock<Schedule>> = PerCpu::new(
    [const {
        Aligned(InterruptLock::new(Schedule {
            queue: RunQueue::new(),
            current: ptr::null(),
            idle: ptr::null(),
            slice_end: NEVER,
            left: None,
        }))
    }; MAX_CPUS],
);

/// The running task, by reference: valid as long as the running code runs.
pub(super) fn current_task<'a>() -> &'a Task {
    // SAFETY: a running task has a reference to itself; `Current` keeps the lifetime to the code that runs in it.
    unsafe { &*cpu::current_task() }
}

/// What kind of task the CPU runs, for messages; works at any time, also before there are tasks.
pub(crate) fn name_of_current() -> &'static str {
    // SAFETY: null before the first task; a running task has a reference to itself.
    unsafe { cpu::current_task().as_ref() }.map_or("boot", |task| task.name)
}

/// Whether a CPU runs its idle task. Exact for the running CPU, a guess for others.
pub(crate) fn is_idle(cpu: usize) -> bool {
    if cpu == cpu::index() {
        // SAFETY: `idle` of this CPU changes only at its start.
        let idle = unsafe { (*SCHEDULES.of(cpu).data_ptr()).idle };
        return ptr::eq(cpu::current_task(), idle);
    }
    placement::idle().contains(cpu)
}

/// Number of tasks that run or wait to run, over all CPUs.
pub(crate) fn runnable() -> usize {
    cpu::online().iter().map(placement::load).sum()
}

/// Makes the running code the CPU's idle task. It must go on to `run_idle`.
pub(crate) fn become_idle() {
    let task = Task::new("idle", KernelStack::foreign(), None, None, None);
    let pointer = Arc::into_raw(task);
    cpu::this().current.set(pointer);
    let mut schedule = SCHEDULES.here().lock();
    schedule.current = pointer;
    schedule.idle = pointer;
}

/// The idle loop: run what there is, else halt. Tickless: only a timer or another CPU ends a halt.
pub(crate) fn run_idle() -> ! {
    loop {
        disable_interrupts();
        if schedule_with(Leaving::Yields) {
            continue;
        }
        if pull() {
            continue;
        }
        if current_task().pending_work().is_empty() {
            placement::set_idle(true);
            enable_interrupts_and_halt();
        } else {
            current_task().work.store(0, Ordering::SeqCst);
            enable_interrupts();
        }
    }
}

/// Marks the running task as going to sleep. Full barrier: the condition that is looked at next is at least as new.
pub(crate) fn prepare_to_sleep() {
    current_task().state.swap(SLEEPING, Ordering::SeqCst);
}

/// Takes `prepare_to_sleep` back.
pub(crate) fn stay_awake() {
    current_task().state.store(RUNNABLE, Ordering::Relaxed);
}

/// Sleeps after `prepare_to_sleep` until woken, or until `deadline` (nanoseconds since boot).
pub(crate) fn sleep(deadline: Option<u64>) {
    let Some(deadline) = deadline else { return schedule() };
    let task = current_task();
    let alarm = match task.alarm.get() {
        Some(alarm) => alarm,
        None => {
            task.alarm.set(time::Timer::new(task.sleeper.clone()));
            task.alarm.expect("the alarm")
        }
    };
    let myself = task.arc();
    *task.sleeper.0.lock() = Some(myself);
    alarm.at(deadline);
    schedule();
    alarm.cancel();
    let myself = task.sleeper.0.lock().take();
    drop(myself);
}

/// Lets others run if the time slice has ended or someone more urgent waits.
pub(crate) fn yield_if_needed() {
    if current_task().pending_work().contains(Work::RESCHEDULE) {
        schedule();
    }
}

/// Lets all equals run first.
pub(crate) fn yield_now() {
    let enabled = interrupts_enabled();
    disable_interrupts();
    schedule_with(Leaving::LetsEqualsPass);
    if enabled {
        enable_interrupts();
    }
}

/// Ends the running task. Everything it owns on its stack must have been dropped.
pub(crate) fn exit_current() -> ! {
    disable_interrupts();
    current_task().state.store(DEAD, Ordering::SeqCst);
    schedule_with(Leaving::Yields);
    unreachable!("a task that has ended was run again");
}

pub(super) fn schedule() {
    let enabled = interrupts_enabled();
    disable_interrupts();
    schedule_with(Leaving::Yields);
    if enabled {
        enable_interrupts();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Yields,
    LetsEqualsPass,
}

/// Chooses the next task and changes to it. Interrupts are off, before and after. Returns whether another task ran.
fn schedule_with(leaving: Leaving) -> bool {
    assert_none_held();
    let lock = SCHEDULES.here();
    // SAFETY: the lock is released in `arrived`, or below when no change happens.
    unsafe { lock.raw() }.lock();
    // SAFETY: we hold the lock.
    let schedule = unsafe { &mut *lock.data_ptr() };
    let current = current_task();
    current.work.fetch_and(!Work::RESCHEDULE.bits(), Ordering::SeqCst);
    let now = time::now();
    account(current, now);
    let is_idle = ptr::eq(schedule.current, schedule.idle);

    let state = park(current);
    let allowed = placement::allowed(current).contains(cpu::index());
    let stays = state == RUNNABLE && allowed && !is_idle;
    if stays {
        let behind = leaving == Leaving::LetsEqualsPass || slice_used_up(current, schedule.slice_end, now);
        schedule.queue.put_back(current.arc(), behind);
    }
    let next = schedule.queue.pop();
    let next_pointer = next.as_ref().map_or(schedule.idle, Arc::as_ptr);
    // The queue's reference is not needed: a started task has its own.
    drop(next);
    if ptr::eq(next_pointer, current) {
        begin_slice(schedule, current, now);
        // SAFETY: we hold the lock.
        unsafe { lock.force_unlock() };
        return false;
    }
    if !is_idle {
        if state == DEAD {
            schedule.left = Some((current.arc(), Left::Ended));
        } else if state == RUNNABLE && !allowed {
            schedule.left = Some((current.arc(), Left::Moves));
        }
    }
    // SAFETY: a queued task is started, so it lives; the idle task lives for ever.
    let next = unsafe { &*next_pointer };
    schedule.current = next;
    begin_slice(schedule, next, now);
    placement::set_idle(ptr::eq(next_pointer, schedule.idle));
    change_to(current, next);
    true
}

/// Lets a task that is on its way to sleep have its wish, unless it has been woken meanwhile. Returns its state.
fn park(task: &Task) -> u8 {
    match task.state.compare_exchange(SLEEPING, PARKED, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => PARKED,
        Err(state) => state,
    }
}

/// Changes address space, registers and stack. Returns when `current` is continued, perhaps on another CPU.
fn change_to(current: &Task, next: &Task) {
    if let Some(user) = &current.user {
        user.save();
        current.leave_sequence();
    }
    loaded::prepare_for(next);
    if let Some(user) = &next.user {
        user.load();
    }
    let this = cpu::this();
    this.current.set(next);
    this.set_kernel_stack(next.stack.top());
    let save = current.stack_pointer.as_ptr();
    let load = next.stack_pointer.load(Ordering::Relaxed);
    // SAFETY: `next` is not running anywhere (it came from our queue, or is our idle task) and its stack pointer was saved
    // under a lock that we have taken since. Interrupts are off.
    unsafe { switch_stack(save, load) };
    arrived();
}

/// First thing that a task does when it has come to a CPU: releases the schedule, cleans up after the task that left.
/// Interrupts are off, before and after.
pub(crate) extern "C" fn arrived() {
    let lock = SCHEDULES.here();
    // SAFETY: the CPU's schedule was locked by the task that left, on our behalf.
    let left = unsafe {
        let left = (*lock.data_ptr()).left.take();
        lock.force_unlock();
        left
    };
    disable_interrupts();
    current_task().arrive_in_sequence();
    timer::disturb();
    loaded::drop_retired();
    match left {
        Some((task, Left::Ended)) => bury(task),
        Some((task, Left::Moves)) => place(task),
        None => {}
    }
}

/// Drops the reference that a task had to itself, and ours. With interrupts on: it may free much.
fn bury(task: Arc<Task>) {
    enable_interrupts();
    // SAFETY: `start` forgot one reference for the task's life, which ends here; the task is on no stack any more.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&task)) };
    drop(task);
    disable_interrupts();
}

/// Adds the time since the last look to a running task's account.
fn account(task: &Task, now: u64) {
    let ran = now.saturating_sub(task.since.swap(now, Ordering::Relaxed));
    let all = task.ran.fetch_add(ran, Ordering::Relaxed) + ran;
    task.account.advance(all);
    let class = task.class();
    if !class.is_real_time() {
        task.position.fetch_add(weighted(class, ran), Ordering::Relaxed);
    }
}

/// CPU time of a task, its present turn included.
pub(super) fn cpu_time(task: &Task) -> u64 {
    if ptr::eq(cpu::current_task(), task) {
        return running_time();
    }
    let ran = task.ran.load(Ordering::Relaxed);
    let schedule = SCHEDULES.of(task.cpu()).lock();
    let running = ptr::eq(schedule.current, task);
    drop(schedule);
    if running { ran + time::now().saturating_sub(task.since.load(Ordering::Relaxed)) } else { ran }
}

/// CPU time of the running task.
pub(super) fn running_time() -> u64 {
    let task = current_task();
    task.ran.load(Ordering::Relaxed) + time::now().saturating_sub(task.since.load(Ordering::Relaxed))
}

/// Time that a CPU has spent on other tasks than its idle one, in nanoseconds.
pub(crate) fn busy_time(cpu: usize) -> u64 {
    let now = time::now();
    let schedule = SCHEDULES.of(cpu).lock();
    if schedule.idle.is_null() {
        return 0;
    }
    // SAFETY: a CPU's idle task is never given back.
    let idle = unsafe { &*schedule.idle };
    let running = if ptr::eq(schedule.current, schedule.idle) {
        now.saturating_sub(idle.since.load(Ordering::Relaxed))
    } else {
        0
    };
    now.saturating_sub(idle.ran.load(Ordering::Relaxed) + running)
}

fn slice_used_up(task: &Task, slice_end: u64, now: u64) -> bool {
    matches!(task.class(), Class::RoundRobin { .. }) && now >= slice_end
}

/// Starts the running task's turn: with a tick at its end if somebody waits.
fn begin_slice(schedule: &mut Schedule, task: &Task, now: u64) {
    task.since.store(now, Ordering::Relaxed);
    let running = usize::from(!ptr::eq(schedule.current, schedule.idle));
    placement::set_load(cpu::index(), schedule.queue.len() + running);
    schedule.slice_end = NEVER;
    set_tick(schedule, task, now);
}

/// Makes sure that a tick comes if somebody waits. On the schedule's own CPU.
pub(super) fn set_tick(schedule: &mut Schedule, current: &Task, now: u64) {
    if schedule.slice_end != NEVER || schedule.queue.len() == 0 || ptr::eq(schedule.current, schedule.idle) {
        return;
    }
    let slice = match current.class() {
        Class::Fifo { .. } => return,
        Class::RoundRobin { .. } => ROUND_ROBIN_SLICE,
        _ => SLICE,
    };
    schedule.slice_end = now + slice;
    timer::no_later_than(schedule.slice_end);
}

/// The timer interrupt: ends a turn, hands tasks over to less loaded CPUs.
pub(crate) fn tick(now: u64) {
    let mut schedule = SCHEDULES.here().lock();
    if schedule.slice_end == NEVER {
        return;
    }
    if now < schedule.slice_end {
        timer::no_later_than(schedule.slice_end);
        return;
    }
    let current = current_task();
    current.work.fetch_or(Work::RESCHEDULE.bits(), Ordering::SeqCst);
    let to = placement::least_loaded(cpu::online().without(cpu::index()));
    let load = schedule.queue.len() + 1;
    let moved = to.filter(|&to| placement::load(to) + 2 <= load).and_then(|to| schedule.queue.take_for(CpuSet::single(to)));
    placement::set_load(cpu::index(), schedule.queue.len() + 1);
    drop(schedule);
    if let (Some(task), Some(to)) = (moved, to) {
        enqueue(task, to, How::Moved);
    }
}

/// Makes the running task give way at the next return to user mode, if somebody waits.
pub(crate) fn preempt_here() {
    if SCHEDULES.here().lock().queue.len() > 0 {
        let current = current_task();
        if !current.class().is_real_time() {
            // A seeded schedule changes tasks, not shares: step behind the next in line.
            current.work.fetch_or(Work::RESCHEDULE.bits(), Ordering::SeqCst);
            current.position.fetch_add(WAKE_GRANULARITY, Ordering::Relaxed);
        }
    }
}

/// The reschedule interrupt: the flags are looked at on the way out; a tick may be due.
pub(crate) fn on_reschedule() {
    let mut schedule = SCHEDULES.here().lock();
    let current = current_task();
    set_tick(&mut schedule, current, time::now());
}
