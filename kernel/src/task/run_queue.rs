//! The tasks that wait for one CPU, in the order in which they will run.
//!
//! Real-time ranks come first, by priority; among equals the order is the turn they took. Fair tasks follow, ordered by
//! virtual run time: real run time divided by weight, so that equal positions mean equal shares. A task that slept does not
//! collect credit beyond `SLEEPER_CREDIT`.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use intrusive_collections::{Bound, KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use super::Task;
use super::class::{Class, NORMAL_WEIGHT};
use crate::cpu::CpuSet;

/// How far behind the others a task that slept may be placed, in nanoseconds of normal weight.
const SLEEPER_CREDIT: u64 = 3_000_000;

intrusive_adapter!(
    #[allow(unsafe_code, reason = "the macro's field offsets")]
    pub(super) Order = Arc<Task>: Task { queue_link => RBTreeAtomicLink }
);

impl<'a> KeyAdapter<'a> for Order {
    type Key = (u8, u64, u64);
    fn get_key(&self, task: &'a Task) -> Self::Key {
        (task.class().rank(), task.position.load(Ordering::Relaxed), task.number)
    }
}

/// One CPU's queue. The running task is not in it.
pub(super) struct RunQueue {
    waiting: RBTree<Order>,
    count: usize,
    /// Virtual run time that every fair task of this queue has reached; only grows.
    floor: u64,
    /// The next turn of a real-time task.
    turn: u64,
}

impl RunQueue {
    pub(super) const fn new() -> Self {
        Self { waiting: RBTree::new(Order::NEW), count: 0, floor: 0, turn: 0 }
    }

    /// Tasks that wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a task that has just become ready, was moved here, or is new.
    pub(super) fn join(&mut self, task: Arc<Task>) {
        if task.class().is_real_time() {
            self.take_turn(&task);
        } else {
            let floor = self.floor;
            let position = task.position.load(Ordering::Relaxed).clamp(floor.saturating_sub(SLEEPER_CREDIT), floor + SLEEPER_CREDIT);
            task.position.store(position, Ordering::Relaxed);
        }
        self.insert(task);
    }

    /// Puts the task that was running back: a fair one where its run time belongs, a real-time one before its equals unless
    /// `behind_equals`.
    pub(super) fn put_back(&mut self, task: Arc<Task>, behind_equals: bool) {
        if behind_equals {
            if task.class().is_real_time() {
                self.take_turn(&task);
            } else if let Some(last) = self.waiting.back().get().filter(|last| last.class().rank() == task.class().rank()) {
                let behind = last.position.load(Ordering::Relaxed).max(task.position.load(Ordering::Relaxed));
                task.position.store(behind, Ordering::Relaxed);
            }
        }
        self.insert(task);
    }

    fn take_turn(&mut self, task: &Task) {
        self.turn += 1;
        task.position.store(self.turn, Ordering::Relaxed);
    }

    fn insert(&mut self, task: Arc<Task>) {
        self.count += 1;
        self.waiting.insert(task);
    }

    /// Takes the next task out.
    pub(super) fn pop(&mut self) -> Option<Arc<Task>> {
        let task = self.waiting.lower_bound_mut(Bound::Unbounded).remove()?;
        self.count -= 1;
        self.raise_floor(&task);
        Some(task)
    }

    fn raise_floor(&mut self, running: &Task) {
        if !running.class().is_real_time() {
            self.floor = self.floor.max(running.position.load(Ordering::Relaxed));
        }
    }

    /// Takes out a task that may run on one of `cpus`; the one that would have waited longest.
    pub(super) fn take_for(&mut self, cpus: CpuSet) -> Option<Arc<Task>> {
        let mut cursor = self.waiting.upper_bound_mut(Bound::Unbounded);
        while let Some(task) = cursor.get() {
            if !task.affinity().and(cpus).is_empty() {
                self.count -= 1;
                let task = cursor.remove()?;
                // Positions are relative to a queue's floor.
                let lag = task.position.load(Ordering::Relaxed).saturating_sub(self.floor);
                task.position.store(lag, Ordering::Relaxed);
                return Some(task);
            }
            cursor.move_prev();
        }
        None
    }

    /// Takes out one task, if it is here.
    pub(super) fn remove(&mut self, wanted: &Task) -> Option<Arc<Task>> {
        let key = (wanted.class().rank(), wanted.position.load(Ordering::Relaxed), wanted.number);
        let task = self.waiting.find_mut(&key).remove()?;
        self.count -= 1;
        Some(task)
    }

    /// Adds a task that another queue's `take_for` gave.
    pub(super) fn adopt(&mut self, task: Arc<Task>) {
        if task.class().is_real_time() {
            self.take_turn(&task);
        } else {
            task.position.fetch_add(self.floor, Ordering::Relaxed);
        }
        self.insert(task);
    }
}

/// What `duration` of running costs a task in virtual run time.
pub(super) fn weighted(class: Class, duration: u64) -> u64 {
    duration * NORMAL_WEIGHT / class.weight()
}
