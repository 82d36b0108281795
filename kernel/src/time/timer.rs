//! Timers: call something at a point in time.
//!
//! Each CPU keeps its own timers in order of deadline and is interrupted for the first. A timer is queued on the CPU that
//! armed it. Its target is called in the timer interrupt, with interrupts off: it may wake tasks and take interrupt locks,
//! and must not sleep or allocate.
//!
//! After `cancel` (or dropping the timer) the target is not being called and will not be: `cancel` waits for a call
//! in progress on another CPU. So it must not be called from the target itself, nor with a lock held that the target takes.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use intrusive_collections::{Bound, KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use crate::cpu::{self, Aligned, MAX_CPUS, PerCpu};
use crate::sync::{InterruptLock, relax};

/// What a timer calls.
pub(crate) trait Expire: Send + Sync {
    /// The deadline has passed. Runs in the timer interrupt.
    fn expire(&self);
}

/// A timer that is armed at most once at a time.
pub(crate) struct Timer {
    inner: Arc<Inner>,
}

struct Inner {
    link: RBTreeAtomicLink,
    deadline: AtomicU64,
    /// Distinguishes timers with equal deadlines.
    number: u64,
    /// The CPU on whose queue it was put last.
    cpu: AtomicU32,
    target: Arc<dyn Expire>,
}

intrusive_adapter!(Queue = Arc<Inner>: Inner { link => RBTreeAtomicLink });

impl<'a> KeyAdapter<'a> for Queue {
    type Key = (u64, u64);
    fn get_key(&self, timer: &'a Inner) -> Self::Key {
        (timer.deadline.load(Ordering::Relaxed), timer.number)
    }
}

struct Timers {
    queue: InterruptLock<RBTree<Queue>>,
    /// The timer whose target is being called; compared only.
    firing: AtomicPtr<Inner>,
}

static TIMERS: PerCpu<Timers> = PerCpu::new(
    [const { Aligned(Timers { queue: InterruptLock::new(RBTree::new(Queue::NEW)), firing: AtomicPtr::new(ptr::null_mut()) }) };
        MAX_CPUS],
);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl Timer {
    /// A timer that is not armed.
    pub(crate) fn new(target: Arc<dyn Expire>) -> Self {
        let inner = Inner {
            link: RBTreeAtomicLink::new(),
            deadline: AtomicU64::new(0),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            cpu: AtomicU32::new(0),
            target,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Arms the timer for `deadline` (nanoseconds since boot), instead of what it was armed for before.
    /// Its owner must not call this from two tasks at once.
    pub(crate) fn at(&self, deadline: u64) {
        self.cancel();
        let timers = TIMERS.here();
        let mut queue = timers.queue.lock();
        self.inner.deadline.store(deadline, Ordering::Relaxed);
        self.inner.cpu.store(cpu::index() as u32, Ordering::Relaxed);
        queue.insert(self.inner.clone());
        crate::interrupt::timer::no_later_than(deadline);
    }

    /// Arms a timer that is known not to be queued, from its own target's call.
    pub(crate) fn again_from_target(&self, deadline: u64) {
        let mut queue = TIMERS.here().queue.lock();
        self.inner.deadline.store(deadline, Ordering::Relaxed);
        self.inner.cpu.store(cpu::index() as u32, Ordering::Relaxed);
        queue.insert(self.inner.clone());
        crate::interrupt::timer::no_later_than(deadline);
    }

    /// Makes sure that the target is not called any more. Returns whether the timer was still to expire.
    pub(crate) fn cancel(&self) -> bool {
        loop {
            let timers = TIMERS.of(self.inner.cpu.load(Ordering::Relaxed) as usize);
            let mut queue = timers.queue.lock();
            if self.inner.link.is_linked() {
                // SAFETY: a linked timer is in the queue of the CPU it names: both change together under this queue's lock.
                let removed = unsafe { queue.cursor_mut_from_ptr(Arc::as_ptr(&self.inner)) }.remove();
                drop(queue);
                drop(removed);
                return true;
            }
            // Under the lock: a timer leaves the queue and begins to fire in one step.
            let is_firing = ptr::eq(timers.firing.load(Ordering::Acquire), Arc::as_ptr(&self.inner));
            drop(queue);
            if !is_firing {
                return false;
            }
            // The target may arm the timer again before it returns: look once more then.
            while ptr::eq(timers.firing.load(Ordering::Acquire), Arc::as_ptr(&self.inner)) {
                relax();
            }
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Deadline of this CPU's first timer.
pub(crate) fn first_deadline() -> Option<u64> {
    let queue = TIMERS.here().queue.lock();
    queue.front().get().map(|timer| timer.deadline.load(Ordering::Relaxed))
}

/// Calls the targets of this CPU's timers whose deadline is not after `now`. In the timer interrupt.
pub(crate) fn expire_due(now: u64) {
    let timers = TIMERS.here();
    loop {
        let mut queue = timers.queue.lock();
        let mut first = queue.lower_bound_mut(Bound::Unbounded);
        let due = first.get().is_some_and(|timer| timer.deadline.load(Ordering::Relaxed) <= now);
        let Some(timer) = due.then(|| first.remove()).flatten() else { return };
        let identity = Arc::as_ptr(&timer).cast_mut();
        timers.firing.store(identity, Ordering::Relaxed);
        drop(queue);
        timer.target.expire();
        // The owner waits for `firing` before it drops its own reference, so this one is never the last.
        drop(timer);
        timers.firing.store(ptr::null_mut(), Ordering::Release);
    }
}
