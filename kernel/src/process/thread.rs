//! One thread of a process: what Linux keeps per task and user mode can see.
//!
//! The scheduler's `Task` has the registers and runs; the `Thread` has the identity and the signals. A task
//! of a program holds its thread; the thread holds its task weakly, and reaches it only under the lock of its
//! process's signals while it is listed there, so the task cannot vanish meanwhile.
//!
//! Fields that only the thread itself writes are atomics without ordering duties; the mask of blocked signals
//! is the exception, see [`Thread::set_blocked`].

use super::restart::Continuation;
use super::sequence;
use super::signal::{AlternateStack, Pending, Signal, SignalSet};
use super::{Process, Usage};
use crate::files::{Context, FileTable};
use crate::sync::{InterruptLock, SpinLock};
use crate::task::Task;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What PR_GET_TIMERSLACK shows at first, in nanoseconds.
pub(crate) const DEFAULT_TIMER_SLACK: u64 = 50_000;
/// Length of a thread's name with its NUL (`TASK_COMM_LEN`).
pub(crate) const NAME_SIZE: usize = 16;

/// One thread.
pub(crate) struct Thread {
    /// Thread id. Changes once at most: `execve` gives the caller the id of its process.
    id: AtomicU32,
    process: Arc<Process>,
    task: InterruptLock<Weak<Task>>,
    name: SpinLock<[u8; NAME_SIZE]>,
    files: SpinLock<Option<Arc<FileTable>>>,
    context: SpinLock<Option<Arc<Context>>>,
    /// Signals sent to this thread alone.
    pub(super) pending: InterruptLock<Pending>,
    blocked: AtomicU64,
    /// The mask to go back to once the signal that ends a `sigsuspend`-like call has been delivered.
    pub(super) saved_mask: SpinLock<Option<SignalSet>>,
    /// Signals that `rt_sigtimedwait` waits for: they count as blocked when it is asked whether an ignored
    /// one is to be kept.
    pub(super) awaited: AtomicU64,
    /// The last exception.
    pub(super) fault: SpinLock<FaultRecord>,
    /// The stack for handlers with SA_ONSTACK.
    pub(super) alternate_stack: SpinLock<AlternateStack>,
    /// Where to store 0 and wake a futex at the end (CLONE_CHILD_CLEARTID); 0 for nowhere.
    pub(crate) clear_at_exit: AtomicU64,
    /// Head of the robust list, or 0.
    pub(crate) robust_list: AtomicU64,
    /// Where its `struct rseq` is. Set by the thread itself; a forked child copies it.
    pub(super) sequence: SpinLock<Option<sequence::Registration>>,
    /// What `restart_syscall` goes on with.
    pub(super) continuation: SpinLock<Option<Continuation>>,
    /// Set while this is a vfork child that has not let go of its parent's memory.
    pub(super) vfork: SpinLock<Option<Arc<super::clone::Release>>>,
    /// PR_SET_TIMERSLACK; kept, sleeps are exact here.
    pub(crate) timer_slack: AtomicU64,
    /// PR_SET_NO_NEW_PRIVS.
    pub(crate) no_new_privileges: AtomicBool,
    /// SCHED_RESET_ON_FORK.
    pub(crate) resets_schedule: AtomicBool,
    /// It has begun to end, and runs no more user code.
    pub(super) exiting: AtomicBool,
}

impl Thread {
    /// A thread of `process` with no task yet.
    pub(super) fn new(id: u32, process: Arc<Process>, template: Template) -> Arc<Thread> {
        Arc::new(Thread {
            id: AtomicU32::new(id),
            process,
            task: InterruptLock::new(Weak::new()),
            name: SpinLock::new(template.name),
            files: SpinLock::new(Some(template.files)),
            context: SpinLock::new(Some(template.context)),
            pending: InterruptLock::new(Pending::new()),
            blocked: AtomicU64::new(template.blocked.bits()),
            saved_mask: SpinLock::new(None),
            awaited: AtomicU64::new(0),
            fault: SpinLock::new(FaultRecord::default()),
            alternate_stack: SpinLock::new(template.alternate_stack),
            clear_at_exit: AtomicU64::new(template.clear_at_exit),
            robust_list: AtomicU64::new(0),
            sequence: SpinLock::new(template.sequence),
            continuation: SpinLock::new(None),
            vfork: SpinLock::new(template.vfork),
            timer_slack: AtomicU64::new(DEFAULT_TIMER_SLACK),
            no_new_privileges: AtomicBool::new(template.no_new_privileges),
            resets_schedule: AtomicBool::new(false),
            exiting: AtomicBool::new(false),
        })
    }

    /// Thread id.
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Takes over the id of the process, in `execve` after all other threads are gone.
    pub(super) fn become_leader(&self) {
        self.id.store(self.process.id(), Ordering::Relaxed);
    }

    /// The process it belongs to.
    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The task that runs it, while it lives.
    pub(crate) fn task(&self) -> Option<Arc<Task>> {
        self.task.lock().upgrade()
    }

    /// Ties the thread to its task, once, before the task starts.
    pub(super) fn set_task(&self, task: &Arc<Task>) {
        *self.task.lock() = Arc::downgrade(task);
    }

    /// The name that `ps` shows, NUL-padded.
    pub(crate) fn name(&self) -> [u8; NAME_SIZE] {
        *self.name.lock()
    }

    /// Sets the name to the first 15 bytes of `name`, up to a NUL.
    pub(crate) fn set_name(&self, name: &[u8]) {
        let mut padded = [0; NAME_SIZE];
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len()).min(NAME_SIZE - 1);
        padded[..length].copy_from_slice(&name[..length]);
        *self.name.lock() = padded;
    }

    /// The open files; `None` once the thread is ending.
    pub(crate) fn files(&self) -> Option<Arc<FileTable>> {
        self.files.lock().clone()
    }

    /// Replaces the table of open files (`execve`, `unshare`), or lets go of it at the end.
    pub(super) fn set_files(&self, files: Option<Arc<FileTable>>) {
        // Dropped after the lock: closing files may sleep.
        let old = core::mem::replace(&mut *self.files.lock(), files);
        drop(old);
    }

    /// Working directory, root and umask; `None` once the thread is ending.
    pub(crate) fn context(&self) -> Option<Arc<Context>> {
        self.context.lock().clone()
    }

    /// As [`Thread::set_files`].
    pub(super) fn set_context(&self, context: Option<Arc<Context>>) {
        let old = core::mem::replace(&mut *self.context.lock(), context);
        drop(old);
    }

    /// The signals that it blocks.
    pub(crate) fn blocked(&self) -> SignalSet {
        SignalSet::from_bits(self.blocked.load(Ordering::SeqCst))
    }

    /// Whether an ignored `signal` is to be kept all the same, because the thread may want it later.
    pub(super) fn holds(&self, signal: Signal) -> bool {
        let awaited = SignalSet::from_bits(self.awaited.load(Ordering::SeqCst));
        (self.blocked() | awaited).contains(signal)
    }

    /// The stack for handlers with SA_ONSTACK.
    pub(crate) fn alternate_stack(&self) -> AlternateStack {
        *self.alternate_stack.lock()
    }

    /// Sets the mask without looking at what became deliverable; `signal::set_mask` is the whole operation.
    ///
    /// A sender adds to a pending set under its lock and reads the mask afterwards; the thread stores its
    /// mask and takes the same lock afterwards. Whichever comes second under the lock sees the other's write,
    /// so an unblocked signal is never left lying.
    pub(super) fn store_blocked(&self, mask: SignalSet) {
        self.blocked.store((mask & !SignalSet::UNBLOCKABLE).bits(), Ordering::SeqCst);
    }

    /// Whether it has begun to end.
    pub(crate) fn is_exiting(&self) -> bool {
        self.exiting.load(Ordering::Relaxed)
    }

    /// Whether it has to end, as soon as it can.
    pub(crate) fn is_leaving(&self) -> bool {
        let signals = self.process.signals.lock();
        signals.ending.is_some()
            || signals.executing.is_some_and(|id| id != self.id())
            || signals.has_deadly(self)
    }

    /// What it used so far.
    pub(crate) fn usage(&self) -> Usage {
        let time = self.task().map_or_else(Default::default, |task| task.processor_time());
        Usage { time, ..Usage::default() }
    }

    /// CPU time in nanoseconds.
    pub(crate) fn cpu_time(&self) -> u64 {
        self.task().map_or(0, |task| task.cpu_time())
    }
}

/// What a new thread starts with.
pub(super) struct Template {
    pub(super) name: [u8; NAME_SIZE],
    pub(super) files: Arc<FileTable>,
    pub(super) context: Arc<Context>,
    pub(super) blocked: SignalSet,
    pub(super) alternate_stack: AlternateStack,
    pub(super) clear_at_exit: u64,
    pub(super) sequence: Option<sequence::Registration>,
    pub(super) vfork: Option<Arc<super::clone::Release>>,
    pub(super) no_new_privileges: bool,
}

/// The last exception that a thread took, as handlers see it in `ucontext`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultRecord {
    /// Vector of the exception.
    pub(crate) vector: u64,
    /// Its error code.
    pub(crate) error: u64,
    /// Address of the access, for page faults.
    pub(crate) address: u64,
}
