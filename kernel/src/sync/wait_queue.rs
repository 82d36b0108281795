//! Sleeping until a condition holds.
//!
//! A waiter registers, marks itself as going to sleep, and *then* looks at its condition. A waker makes the condition true
//! and *then* looks at the registrations. Whichever comes second sees the other (both sides are full barriers), so no
//! wake-up is lost. Wake-ups may be spurious; every waiter looks again.
//!
//! A registration is removed only by its waiter, so a waker, which may be an interrupt handler, never drops a task.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::InterruptLock;
use crate::task::{self, Task};

/// Why an interruptible wait ended without its condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    /// Something (a signal) wants the task back in user mode.
    Interrupted,
    /// The deadline passed.
    TimedOut,
}

struct Waiter {
    ticket: u64,
    task: Arc<Task>,
    /// A waker has chosen this waiter, and it has not looked at its condition since.
    chosen: bool,
}

struct Waiters {
    next_ticket: u64,
    list: Vec<Waiter>,
}

/// Tasks that wait for something.
pub(crate) struct WaitQueue {
    waiters: InterruptLock<Waiters>,
}

impl WaitQueue {
    pub(crate) const fn new() -> Self {
        Self { waiters: InterruptLock::new(Waiters { next_ticket: 0, list: Vec::new() }) }
    }

    /// Sleeps until `condition` gives a value. Signals do not end this wait.
    pub(crate) fn wait<R>(&self, mut condition: impl FnMut() -> Option<R>) -> R {
        if let Some(result) = condition() {
            return result;
        }
        let registration = self.register();
        loop {
            registration.prepare();
            if let Some(result) = condition() {
                return registration.satisfied(result);
            }
            task::sleep(None);
        }
    }

    /// Sleeps until `condition` gives a value, a signal comes, or `deadline` (nanoseconds since boot) has passed.
    pub(crate) fn wait_interruptible<R>(
        &self,
        deadline: Option<u64>,
        mut condition: impl FnMut() -> Option<R>,
    ) -> Result<R, Wake> {
        if let Some(result) = condition() {
            return Ok(result);
        }
        let registration = self.register();
        loop {
            registration.prepare();
            if let Some(result) = condition() {
                return Ok(registration.satisfied(result));
            }
            let end = if task::current().interrupted() {
                Some(Wake::Interrupted)
            } else if deadline.is_some_and(|deadline| crate::time::now() >= deadline) {
                Some(Wake::TimedOut)
            } else {
                None
            };
            if let Some(end) = end {
                task::stay_awake();
                return Err(end);
            }
            task::sleep(deadline);
        }
    }

    /// Joins the queue; for waits on several queues at once (register with all, then `task::prepare_to_sleep`, look, sleep).
    pub(crate) fn register(&self) -> Registration<'_> {
        let task = task::current().arc();
        let mut waiters = self.waiters.lock();
        let ticket = waiters.next_ticket;
        waiters.next_ticket += 1;
        waiters.list.push(Waiter { ticket, task, chosen: false });
        Registration { queue: self, ticket }
    }

    /// Wakes the task that has waited longest.
    pub(crate) fn wake_one(&self) {
        self.wake_n(1);
    }

    /// Wakes the `count` tasks that have waited longest. Returns how many there were.
    pub(crate) fn wake_n(&self, count: usize) -> usize {
        let mut waiters = self.waiters.lock();
        let mut woken = 0;
        for waiter in waiters.list.iter_mut().filter(|waiter| !waiter.chosen).take(count) {
            waiter.chosen = true;
            waiter.task.wake();
            woken += 1;
        }
        woken
    }

    /// Wakes everyone.
    pub(crate) fn wake_all(&self) -> usize {
        self.wake_n(usize::MAX)
    }
}

/// A place in a queue; leaving is dropping it.
pub(crate) struct Registration<'a> {
    queue: &'a WaitQueue,
    ticket: u64,
}

impl Registration<'_> {
    /// Marks the task as going to sleep and the registration as not yet chosen. The condition must be looked at next.
    pub(crate) fn prepare(&self) {
        task::prepare_to_sleep();
        self.take_choice();
    }

    /// Forgets that a waker chose this waiter; says whether one had.
    fn take_choice(&self) -> bool {
        let mut waiters = self.queue.waiters.lock();
        let found = waiters.list.iter_mut().find(|waiter| waiter.ticket == self.ticket);
        found.is_some_and(|waiter| core::mem::take(&mut waiter.chosen))
    }

    /// Ends a wait whose condition came true: a choice that arrived meanwhile was meant for it.
    fn satisfied<R>(self, result: R) -> R {
        task::stay_awake();
        self.take_choice();
        result
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let mut waiters = self.queue.waiters.lock();
        let Some(at) = waiters.list.iter().position(|waiter| waiter.ticket == self.ticket) else { return };
        let waiter = waiters.list.remove(at);
        drop(waiters);
        if waiter.chosen {
            // Chosen, but leaving for another reason: the wake-up belongs to the next in line.
            self.queue.wake_one();
        }
    }
}
