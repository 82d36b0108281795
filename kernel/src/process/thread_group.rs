//! A process: a group of threads that share an id, an address space and signal handlers.
//!
//! Locks, in the order in which they may be taken together: the family (`family`), then a process's signals,
//! then a thread's pending signals, then the table of actions. The last three are taken by timers'
//! interrupts, so they keep interrupts off, and nothing under them allocates for a standard signal or sleeps.
//! The other fields have locks of their own that are held for a copy only.

use super::credentials::{CAP_SYS_PTRACE, Credentials};
use super::end::End;
use super::family::REAPER;
use super::limits::{Limit, Limits, Resource};
use super::signal::{Action, Actions, Arrivals, Signal, SignalState};
use super::timers::Timers;
use super::{Thread, Usage, UserSpace};
use crate::sync::{InterruptLock, SpinLock, WaitQueue};
use crate::task::ProcessorTime;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// A process.
pub(crate) struct Process {
    id: u32,
    /// Threads, shared pending signals, stop and exit state.
    pub(super) signals: InterruptLock<SignalState>,
    actions: InterruptLock<Arc<InterruptLock<Actions>>>,
    memory: SpinLock<Option<Arc<UserSpace>>>,
    credentials: SpinLock<Credentials>,
    limits: SpinLock<Limits>,
    /// Wakes `wait4`: a child ended, stopped or continued.
    pub(super) child_events: WaitQueue,
    /// Wakes stopped threads, and the `execve` that waits for the others to be gone.
    pub(super) changes: WaitQueue,
    /// What threads that are gone used.
    past_usage: SpinLock<Usage>,
    /// The CPU time in it, apart because alarms look at it in interrupts.
    past_time: AtomicU64,
    /// What children that were waited for used.
    child_usage: SpinLock<Usage>,
    timers: Timers,
    /// For those who wait for its signals by a file.
    arrivals: Arc<Arrivals>,
    /// Id of the parent, a copy of what the family says, for `getppid`.
    pub(super) parent: AtomicU32,
    /// Nanoseconds since boot.
    started: u64,
    /// PR_SET_CHILD_SUBREAPER.
    pub(crate) reaps_orphans: AtomicBool,
    /// PR_SET_PDEATHSIG, 0 for none.
    pub(crate) parent_death_signal: AtomicU32,
    /// PR_SET_DUMPABLE.
    pub(crate) dumpable: AtomicU32,
    /// `personality`.
    pub(crate) personality: AtomicU32,
    /// `/proc/PID/oom_score_adj`.
    out_of_memory_adjustment: AtomicI32,
    /// Set once a program was loaded since the last fork: `setpgid` by the parent is refused then.
    pub(super) executed: AtomicBool,
    faults: AtomicU64,
    end: End,
}

/// User and system time of all threads that are gone, of whatever process.
static PAST: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// Processor time of all programs that ever ran.
pub(crate) fn time_of_all() -> ProcessorTime {
    let mut all = ProcessorTime { user: PAST.0.load(Ordering::Relaxed), system: PAST.1.load(Ordering::Relaxed) };
    for process in super::process_ids().into_iter().filter_map(super::find_process) {
        for thread in process.threads() {
            let time = thread.usage().time;
            all.user += time.user;
            all.system += time.system;
        }
    }
    all
}

impl Process {
    /// A process without threads.
    pub(super) fn new(id: u32, inherited: Inherited) -> Arc<Process> {
        Arc::new(Process {
            id,
            signals: InterruptLock::new(SignalState::new()),
            actions: InterruptLock::new(inherited.actions),
            memory: SpinLock::new(Some(inherited.memory)),
            credentials: SpinLock::new(inherited.credentials),
            limits: SpinLock::new(inherited.limits),
            child_events: WaitQueue::new(),
            changes: WaitQueue::new(),
            past_usage: SpinLock::new(Usage::default()),
            past_time: AtomicU64::new(0),
            child_usage: SpinLock::new(Usage::default()),
            timers: Timers::new(),
            arrivals: Arc::new(Arrivals::new()),
            parent: AtomicU32::new(REAPER),
            started: crate::time::now(),
            reaps_orphans: AtomicBool::new(false),
            parent_death_signal: AtomicU32::new(0),
            dumpable: AtomicU32::new(inherited.dumpable),
            personality: AtomicU32::new(inherited.personality),
            out_of_memory_adjustment: AtomicI32::new(inherited.out_of_memory_adjustment),
            executed: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            end: End::new(),
        })
    }

    /// Process id, also the id of its first thread.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Id of its parent, 1 for the kernel.
    pub(crate) fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }

    /// Its end, for those who wait for it by a file.
    pub(crate) fn end(&self) -> &End {
        &self.end
    }

    /// Whether it may look into another process, or change what that has (Linux: as a debugger could). `ids` says as which user and group.
    pub(crate) fn may_look_into(&self, other: &Process, ids: impl FnOnce(&Credentials) -> (u32, u32)) -> bool {
        if core::ptr::eq(self, other) {
            return true;
        }
        let (own, theirs) = (self.credentials(), other.credentials());
        let (user, group) = ids(&own);
        let is_same_user = [theirs.user.real, theirs.user.effective, theirs.user.saved].iter().all(|id| *id == user)
            && [theirs.group.real, theirs.group.effective, theirs.group.saved].iter().all(|id| *id == group);
        let has_more = theirs.capabilities.permitted & !own.capabilities.effective != 0;
        let is_open = other.dumpable.load(Ordering::Relaxed) == 1;
        own.has(CAP_SYS_PTRACE) || (is_same_user && is_open && !has_more)
    }

    /// Nanoseconds since boot when it was made.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Its address space; `None` once it has ended.
    pub(crate) fn memory(&self) -> Option<Arc<UserSpace>> {
        self.memory.lock().clone()
    }

    /// Replaces its address space (`execve`) or lets go of it (the end), and returns the old one.
    pub(super) fn set_memory(&self, memory: Option<Arc<UserSpace>>) -> Option<Arc<UserSpace>> {
        core::mem::replace(&mut *self.memory.lock(), memory)
    }

    /// A copy of its ids and capabilities.
    pub(crate) fn credentials(&self) -> Credentials {
        self.credentials.lock().clone()
    }

    /// Changes its ids and capabilities, and what its address space allows with them. What it has in memory from when it was somebody else is not for
    /// who it is now to look at, and its parent may not be one to have it killed any more.
    pub(crate) fn with_credentials<R>(&self, change: impl FnOnce(&mut Credentials) -> R) -> R {
        let (result, is_other) = {
            let mut credentials = self.credentials.lock();
            let before = credentials.clone();
            (change(&mut credentials), credentials.is_other_than(&before))
        };
        if is_other {
            self.dumpable.store(0, Ordering::Relaxed);
            self.parent_death_signal.store(0, Ordering::Relaxed);
        }
        self.enforce_limits();
        result
    }

    /// Has its address space go by its limits as they are now.
    pub(crate) fn enforce_limits(&self) {
        if let Some(memory) = self.memory() {
            self.limits().enforce_in(memory.space(), &self.credentials());
        }
    }

    /// All resource limits.
    pub(crate) fn limits(&self) -> Limits {
        self.limits.lock().clone()
    }

    /// One resource limit.
    pub(crate) fn limit(&self, resource: Resource) -> Limit {
        self.limits.lock().get(resource)
    }

    /// Reads and changes limits in one step.
    pub(crate) fn with_limits<R>(&self, change: impl FnOnce(&mut Limits) -> R) -> R {
        change(&mut self.limits.lock())
    }

    /// Its threads at this moment.
    pub(crate) fn threads(&self) -> Vec<Arc<Thread>> {
        // Room is made before interrupts are off; if threads were added meanwhile, once more.
        let mut threads = Vec::new();
        loop {
            let count = self.signals.lock().threads.len();
            threads.reserve(count);
            let signals = self.signals.lock();
            if signals.threads.len() <= threads.capacity() {
                threads.extend(signals.threads.iter().cloned());
                return threads;
            }
        }
    }

    /// The first thread while it lives, else any.
    pub(crate) fn leader(&self) -> Option<Arc<Thread>> {
        let signals = self.signals.lock();
        let first = signals.threads.iter().find(|thread| thread.id() == self.id);
        first.or_else(|| signals.threads.first()).cloned()
    }

    /// The table of actions, shared with whom CLONE_SIGHAND made it shared.
    pub(super) fn actions(&self) -> Arc<InterruptLock<Actions>> {
        self.actions.lock().clone()
    }

    /// The action for `signal`.
    pub(crate) fn action(&self, signal: Signal) -> Action {
        self.actions.lock().lock().get(signal)
    }

    /// Replaces the table by one of its own (`execve`).
    pub(super) fn set_actions(&self, actions: Actions) {
        let new = Arc::new(InterruptLock::new(actions));
        let old = core::mem::replace(&mut *self.actions.lock(), new);
        drop(old);
    }

    /// News of its signals.
    pub(crate) fn arrivals(&self) -> &Arc<Arrivals> {
        &self.arrivals
    }

    /// Its alarms.
    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Whether it is stopped or stopping.
    pub(crate) fn is_stopped(&self) -> bool {
        self.signals.lock().stop.is_some()
    }

    /// How many threads live.
    pub(crate) fn thread_count(&self) -> usize {
        self.signals.lock().threads.len()
    }

    /// CPU time of all its threads in nanoseconds, those that are gone included. Callable from interrupts.
    pub(crate) fn cpu_time(&self) -> u64 {
        let past = self.past_time.load(Ordering::Relaxed);
        let signals = self.signals.lock();
        past + signals.threads.iter().map(|thread| thread.cpu_time()).sum::<u64>()
    }

    /// What its threads used, those that are gone included.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = *self.past_usage.lock();
        for thread in self.threads() {
            usage.add(&thread.usage());
        }
        usage.minor_faults += self.faults.load(Ordering::Relaxed);
        usage.peak_pages = self.memory().map_or(0, |memory| memory.space().sizes().resident_peak);
        usage
    }

    /// Keeps what a thread that ends has used.
    pub(super) fn add_past_usage(&self, usage: &Usage) {
        let ProcessorTime { user, system } = usage.time;
        self.past_time.fetch_add(user + system, Ordering::Relaxed);
        PAST.0.fetch_add(user, Ordering::Relaxed);
        PAST.1.fetch_add(system, Ordering::Relaxed);
        self.past_usage.lock().add(usage);
    }

    /// What children used that were waited for.
    pub(crate) fn child_usage(&self) -> Usage {
        *self.child_usage.lock()
    }

    /// Adds what a child used that was just waited for.
    pub(super) fn add_child_usage(&self, usage: &Usage) {
        self.child_usage.lock().add(usage);
    }

    /// Counts one page fault.
    pub(crate) fn count_fault(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the whole process is on its way out.
    pub(crate) fn is_ending(&self) -> bool {
        self.signals.lock().ending.is_some()
    }

    /// How eagerly the out-of-memory kill picks it: -1000 (never) to 1000.
    pub(crate) fn out_of_memory_adjustment(&self) -> i32 {
        self.out_of_memory_adjustment.load(Ordering::Relaxed)
    }

    /// Sets it; the caller has checked the range.
    pub(crate) fn set_out_of_memory_adjustment(&self, value: i32) {
        self.out_of_memory_adjustment.store(value, Ordering::Relaxed);
    }
}

/// What a new process has from its parent.
pub(super) struct Inherited {
    pub(super) actions: Arc<InterruptLock<Actions>>,
    pub(super) memory: Arc<UserSpace>,
    pub(super) credentials: Credentials,
    pub(super) limits: Limits,
    pub(super) personality: u32,
    pub(super) dumpable: u32,
    pub(super) out_of_memory_adjustment: i32,
}
