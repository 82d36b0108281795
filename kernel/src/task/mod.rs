//! Tasks: what a CPU runs. A task is a kernel stack, a place in the schedule and, for a program's thread, user registers, an
//! address space and the `process::Thread` it belongs to.
//!
//! **Life.** `new_user` or `spawn_kernel` makes a task; `start` queues it; `exit_current` ends it. A started task holds a
//! reference to itself until it has left its stack for good, so nobody else needs to keep it.
//!
//! **Sleep.** `prepare_to_sleep`, look at the condition, then `sleep` or `stay_awake`. `wake` may come at any time, also
//! before the sleep, and is never lost; it may also be spurious (signals). `sync::WaitQueue` is the usual way.
//!
//! **The kernel is not preemptible.** Between two calls that may sleep or yield, kernel code stays on its CPU. Long loops
//! call `yield_if_needed`.

mod class;
mod loaded;
mod placement;
mod processor_time;
mod queueing;
mod run_queue;
mod scheduler;
mod sequence_watch;
mod stack;
mod user_state;

use alloc::sync::{Arc, Weak};
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use bitflags::bitflags;
use intrusive_collections::RBTreeAtomicLink;

use crate::arch::{FpuState, TrapFrame};
use crate::cpu::{self, CpuSet};
use crate::memory::AddressSpace;
use crate::process::Thread;
use crate::sync::{InterruptLock, Once};
use crate::time::{Expire, Timer};

pub(crate) use class::Class;
pub(crate) use loaded::{is_switching, with_loaded};
pub(crate) use processor_time::{ProcessorTime, is_sampled, measure_from_here, measured, measured_if_long, sampled};
pub(crate) use scheduler::{
    arrived, become_idle, busy_time, exit_current, is_idle, name_of_current, on_reschedule, preempt_here, prepare_to_sleep, run_idle, runnable, sleep, stay_awake, tick, yield_if_needed,
    yield_now,
};
pub(crate) use stack::KernelStack;
use user_state::UserState;

bitflags! {
    /// What a task must do before it returns to user mode.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Work: u32 {
        /// Let another task run.
        const RESCHEDULE = 1;
        /// Look at signals (and end interruptible waits).
        const INTERRUPTED = 2;
        /// Tell the program its CPU's number, and restart the sequence that it may be in (`process::sequence`).
        const SEQUENCE = 4;
    }
}

/// Running or ready to run.
const RUNNABLE: u8 = 0;
/// Running, but on its way to sleep.
const SLEEPING: u8 = 1;
/// Asleep: off its CPU, in no queue.
const PARKED: u8 = 2;
/// Has ended, and never runs again.
const DEAD: u8 = 3;

/// A task. The entry code knows the offset of `work`.
#[repr(C)]
pub(crate) struct Task {
    pub(crate) work: AtomicU32,
    state: AtomicU8,
    number: u64,
    name: &'static str,
    /// This task, for those who have it only by reference.
    myself: Weak<Task>,
    stack: KernelStack,
    /// Where the stack stopped; used by the CPU that switches from or to the task.
    stack_pointer: AtomicU64,
    /// What a new kernel task calls.
    entry: InterruptLock<Option<KernelFunction>>,
    user: Option<UserState>,
    space: InterruptLock<Option<Arc<AddressSpace>>>,
    thread: Option<Arc<Thread>>,
    queue_link: RBTreeAtomicLink,
    class: AtomicU32,
    /// Weighted run time in the queue of `cpu`, in nanoseconds of a task of normal weight; for a real-time task its turn.
    position: AtomicU64,
    /// When it last began to run, and how long it has run, in nanoseconds.
    since: AtomicU64,
    ran: AtomicU64,
    account: processor_time::Account,
    /// The CPU it runs on, waits for, or ran on last.
    cpu: AtomicU32,
    affinity: AtomicU64,
    sequence: sequence_watch::SequenceWatch,
    alarm: Once<Timer>,
    sleeper: Arc<Sleeper>,
    started: AtomicBool,
}

type KernelFunction = alloc::boxed::Box<dyn FnOnce() + Send>;

/// Offset that the entry code uses; the field must stay a 32-bit word.
const _: () = assert!(offset_of!(Task, work) % 4 == 0);

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// There was no memory for a kernel stack.
#[derive(Debug)]
pub(crate) struct OutOfStacks;

/// Wakes a task when its sleep has lasted long enough. The task puts itself in and takes itself out, so the timer
/// interrupt never holds the last reference to it.
struct Sleeper(InterruptLock<Option<Arc<Task>>>);

impl Expire for Sleeper {
    fn expire(&self) {
        if let Some(task) = &*self.0.lock() {
            task.wake();
        }
    }
}

impl Task {
    fn new(
        name: &'static str,
        stack: KernelStack,
        user: Option<UserState>,
        space: Option<Arc<AddressSpace>>,
        thread: Option<Arc<Thread>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            work: AtomicU32::new(0),
            state: AtomicU8::new(RUNNABLE),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            name,
            myself: myself.clone(),
            stack,
            stack_pointer: AtomicU64::new(0),
            entry: InterruptLock::new(None),
            user,
            space: InterruptLock::new(space),
            thread,
            queue_link: RBTreeAtomicLink::new(),
            class: AtomicU32::new(Class::DEFAULT.to_bits()),
            position: AtomicU64::new(0),
            since: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            account: processor_time::Account::new(),
            cpu: AtomicU32::new(cpu::index() as u32),
            affinity: AtomicU64::new(CpuSet::ALL.bits()),
            sequence: sequence_watch::SequenceWatch::new(),
            alarm: Once::new(),
            sleeper: Arc::new(Sleeper(InterruptLock::new(None))),
            started: AtomicBool::new(false),
        })
    }

    /// A task that will begin in user mode with the registers of `frame`, and all else as in a new program. It waits for `start`.
    pub(crate) fn new_user(frame: TrapFrame, thread: Arc<Thread>, space: Arc<AddressSpace>) -> Result<Arc<Self>, OutOfStacks> {
        let stack = KernelStack::try_allocate(stack::TASK_BYTES).ok_or(OutOfStacks)?;
        let pointer = stack.prepare_user(&frame);
        let task = Self::new("user", stack, Some(UserState::new()), Some(space), Some(thread));
        task.stack_pointer.store(pointer, Ordering::Relaxed);
        task.inherit_schedule(&current());
        Ok(task)
    }

    /// Lets a task that has not started begin with the floating-point state and the FS and GS bases of the running one.
    pub(crate) fn inherit_user_state(&self) {
        let current = current();
        if let (Some(mine), Some(theirs)) = (&self.user, &current.user) {
            mine.copy_running(theirs);
        }
    }

    /// Takes over class, nice value and affinity from another task.
    fn inherit_schedule(&self, other: &Task) {
        self.class.store(other.class.load(Ordering::Relaxed), Ordering::Relaxed);
        self.affinity.store(other.affinity.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Lets a new task run. Once for each.
    pub(crate) fn start(&self) {
        let twice = self.started.swap(true, Ordering::Relaxed);
        assert!(!twice, "a task was started twice");
        let task = self.arc();
        // The reference that the task has to itself: given back after its last switch (`scheduler::bury`).
        core::mem::forget(task.clone());
        queueing::place_new(task);
    }

    /// A counted reference to this task.
    pub(crate) fn arc(&self) -> Arc<Self> {
        self.myself.upgrade().expect("a task that is in use has a reference")
    }

    /// Ends the task's sleep, or keeps it from beginning one that it has prepared. May be called anywhere, interrupt
    /// handlers included. Full barrier: what the caller stored before is visible to the task when it looks again.
    pub(crate) fn wake(&self) {
        let change = |from| self.state.compare_exchange(from, RUNNABLE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        // A task on its way to sleep sees for itself that it is runnable again; one that is off its CPU must be queued.
        if !change(SLEEPING) && change(PARKED) {
            queueing::woken(self);
        }
    }

    /// Makes the task look at its signals: ends an interruptible wait, or brings it into the kernel from user mode.
    pub(crate) fn interrupt(&self) {
        self.work.fetch_or(Work::INTERRUPTED.bits(), Ordering::SeqCst);
        self.wake();
        queueing::kick(self);
    }

    /// Whether `interrupt` has been called since the last `clear_interrupted`.
    pub(crate) fn interrupted(&self) -> bool {
        self.pending_work().contains(Work::INTERRUPTED)
    }

    /// Forgets an interruption. Full barrier: what is looked at afterwards is at least as new as the interruption.
    pub(crate) fn clear_interrupted(&self) {
        self.work.fetch_and(!Work::INTERRUPTED.bits(), Ordering::SeqCst);
    }

    /// What must be done before the return to user mode.
    pub(crate) fn pending_work(&self) -> Work {
        Work::from_bits_truncate(self.work.load(Ordering::SeqCst))
    }

    /// The thread of a program that this task runs; `None` for kernel tasks.
    pub(crate) fn thread(&self) -> Option<&Arc<Thread>> {
        self.thread.as_ref()
    }

    /// The address space, unless it is a kernel task or has given it up.
    pub(crate) fn space(&self) -> Option<Arc<AddressSpace>> {
        self.space.lock().clone()
    }

    /// The CPU on which the task runs or ran last.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    /// CPU time used, in nanoseconds.
    pub(crate) fn cpu_time(&self) -> u64 {
        scheduler::cpu_time(self)
    }

    /// The same, by whether the program or the kernel ran.
    pub(crate) fn processor_time(&self) -> ProcessorTime {
        self.account.split(self.cpu_time())
    }

    /// Whether the task is asleep (for `/proc`).
    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), SLEEPING | PARKED)
    }

    /// The CPUs it may run on.
    pub(crate) fn affinity(&self) -> CpuSet {
        CpuSet::from_bits(self.affinity.load(Ordering::Relaxed))
    }

    /// How it is scheduled.
    pub(crate) fn class(&self) -> Class {
        Class::from_bits(self.class.load(Ordering::Relaxed))
    }

    /// The FS base of a task that is not running or is the running one.
    pub(crate) fn fs_base(&self) -> u64 {
        self.user.as_ref().map_or(0, |user| user.fs_base(is_current(self)))
    }

    /// Sets the FS base; of the running task, or of one that has not started.
    pub(crate) fn set_fs_base(&self, base: u64) {
        if let Some(user) = &self.user {
            user.set_fs_base(base, is_current(self));
        }
    }

    /// The GS base that user mode sees; as `fs_base`.
    pub(crate) fn gs_base(&self) -> u64 {
        self.user.as_ref().map_or(0, |user| user.gs_base(is_current(self)))
    }

    /// Sets the GS base; as `set_fs_base`.
    pub(crate) fn set_gs_base(&self, base: u64) {
        if let Some(user) = &self.user {
            user.set_gs_base(base, is_current(self));
        }
    }
}

/// What a CPU has spent on programs and kernel tasks since it started.
pub(crate) fn processor_time_of_cpu(cpu: usize) -> ProcessorTime {
    processor_time::split_of_cpu(cpu, busy_time(cpu))
}

fn is_current(task: &Task) -> bool {
    core::ptr::eq(cpu::current_task(), task)
}

/// Sets the CPUs a task may run on; it moves at once if it must. The part of `set` that is not online is ignored.
/// Returns whether anything was left of it; if not, nothing changes.
pub(crate) fn set_affinity(task: &Task, set: CpuSet) -> bool {
    if set.and(cpu::online()).is_empty() {
        return false;
    }
    task.affinity.store(set.bits(), Ordering::SeqCst);
    queueing::enforce_affinity(task);
    true
}

/// Sets how a task is scheduled, from now on.
pub(crate) fn set_class(task: &Task, class: Class) {
    queueing::set_class(task, class);
}

/// The running task. Valid for as long as the code that asked runs, which is all this type allows.
pub(crate) struct Current(PhantomData<*const Cell<()>>);

impl Deref for Current {
    type Target = Task;
    fn deref(&self) -> &Task {
        scheduler::current_task()
    }
}

impl Current {
    /// Looks at or changes the floating-point state that user mode will see.
    ///
    /// # Panics
    /// If it is a kernel task.
    pub(crate) fn with_fpu<R>(&self, work: impl FnOnce(&mut FpuState) -> R) -> R {
        self.user.as_ref().expect("a kernel task has no floating-point state").with_running_fpu(work)
    }

    /// Replaces the address space (exec). The old one is left before this returns, and handed back.
    pub(crate) fn switch_space(&self, space: Arc<AddressSpace>) -> Option<Arc<AddressSpace>> {
        loaded::replace(self, space)
    }

    /// Gives the address space up (exit): from here on the task only borrows it, like a kernel task.
    pub(crate) fn leave_space(&self) -> Option<Arc<AddressSpace>> {
        loaded::give_up(self)
    }
}

/// The running task.
pub(crate) fn current() -> Current {
    Current(PhantomData)
}

/// Makes and starts a kernel task.
///
/// # Panics
/// If there is no memory for its stack: kernel tasks are made at boot.
pub(crate) fn spawn_kernel(name: &'static str, function: impl FnOnce() + Send + 'static) -> Arc<Task> {
    let stack = KernelStack::allocate(stack::TASK_BYTES);
    let pointer = stack.prepare_kernel(kernel_main);
    let task = Task::new(name, stack, None, None, None);
    task.stack_pointer.store(pointer, Ordering::Relaxed);
    *task.entry.lock() = Some(alloc::boxed::Box::new(function));
    task.start();
    task
}

/// First Rust code of a kernel task.
extern "C" fn kernel_main() -> ! {
    let function = current().entry.lock().take();
    if let Some(function) = function {
        function();
    }
    exit_current()
}
