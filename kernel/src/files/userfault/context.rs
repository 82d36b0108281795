//! What faults of watched areas go to: `memory`'s monitor on this kernel, and those who wait for it.
//!
//! Three kinds wait. Readers, for something to be read (`arrived`). Threads whose fault was told, for an answer, and those who
//! tell of something else, for a reader (`answered`; each looks for its own ticket). Whoever takes a ticket out of the queue wakes
//! these afterwards.

use super::queue::{Message, Queue, Taken, Told};
use crate::files::readiness::{Observers, Readiness};
use crate::memory::{AddressSpace, Kernel};
use crate::process;
use crate::sync::{SpinLock, WaitQueue};
use ::memory::{Event, Monitor, Origin, PageRange, Waited, WatchedFault, Wishes, round_down};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, Ordering};
use linux_raw_sys::general as abi;

/// Marks features that have been agreed upon, none included.
const ENABLED: u32 = 1 << 31;

/// What areas are watched by, and what their faults wait at.
pub(crate) struct Context {
    /// Whose faults these are.
    space: Weak<AddressSpace>,
    /// Those of the call that made it.
    flags: u32,
    /// What was agreed upon; 0 until then.
    features: AtomicU32,
    /// Changes that have begun, and have not been read.
    changing: AtomicU32,
    queue: SpinLock<Queue>,
    arrived: WaitQueue,
    answered: WaitQueue,
    observers: Observers,
}

impl Context {
    pub(super) fn new(space: &Weak<AddressSpace>, flags: u32) -> Arc<Self> {
        Arc::new(Self {
            space: space.clone(),
            flags,
            features: AtomicU32::new(0),
            changing: AtomicU32::new(0),
            queue: SpinLock::new(Queue::new()),
            arrived: WaitQueue::new(),
            answered: WaitQueue::new(),
            observers: Observers::new(),
        })
    }

    /// The address space, unless it is gone.
    pub(super) fn space(&self) -> Option<Arc<AddressSpace>> {
        self.space.upgrade()
    }

    pub(super) fn flags(&self) -> u32 {
        self.flags
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.features.load(Ordering::Acquire) != 0
    }

    /// Agrees upon features; false if that has been done before.
    pub(super) fn enable(&self, features: u32) -> bool {
        let enabled = features | ENABLED;
        self.features.compare_exchange(0, enabled, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn has_feature(&self, feature: u32) -> bool {
        self.features.load(Ordering::Relaxed) & feature != 0
    }

    /// Where readers wait.
    pub(super) fn arrivals(&self) -> &WaitQueue {
        &self.arrived
    }

    pub(super) fn observers(&self) -> &Observers {
        &self.observers
    }

    pub(super) fn has_unread(&self) -> bool {
        self.queue.lock().has_unread()
    }

    /// Takes what is read next.
    pub(super) fn take(&self) -> Option<Taken> {
        let taken = self.queue.lock().take()?;
        // Who told of it may go on. Of a fault nobody need hear.
        self.answered.wake_all();
        Some(taken)
    }

    /// A reader has got its descriptor for a child, or could not.
    pub(super) fn settle_fork(&self, ticket: u64, is_read: bool) {
        self.queue.lock().settle_fork(ticket, is_read);
        self.answered.wake_all();
    }

    /// The file is closed: nothing is watched any more, and nobody waits.
    pub(super) fn release(self: &Arc<Self>) {
        // First: a fault that is told from here on does not wait.
        self.queue.lock().is_released = true;
        if let Some(space) = self.space() {
            space.unwatch_all(self);
        }
        self.queue.lock().answer_all();
        self.answered.wake_all();
    }

    fn note_arrival(&self) {
        self.arrived.wake_one();
        self.observers.announce(Readiness::INPUT);
    }

    /// Waits until a ticket is out of the queue, or whoever waits is on its way out.
    fn wait_unless_leaving(&self, mut is_over: impl FnMut() -> bool) -> Waited {
        let thread = process::current();
        self.answered.wait(|| {
            if is_over() {
                Some(Waited::Woken)
            } else {
                thread.is_leaving().then_some(Waited::Interrupted)
            }
        })
    }
}

impl Monitor<Kernel> for Context {
    fn wishes(&self) -> Wishes {
        let mut wishes = Wishes::empty();
        wishes.set(Wishes::FORK, self.has_feature(abi::UFFD_FEATURE_EVENT_FORK));
        wishes.set(Wishes::REMAP, self.has_feature(abi::UFFD_FEATURE_EVENT_REMAP));
        wishes.set(Wishes::REMOVE, self.has_feature(abi::UFFD_FEATURE_EVENT_REMOVE));
        wishes.set(Wishes::UNMAP, self.has_feature(abi::UFFD_FEATURE_EVENT_UNMAP));
        wishes.set(Wishes::SIGNAL, self.has_feature(abi::UFFD_FEATURE_SIGBUS));
        // What a thread still stores on its way out is not worth anybody's waiting.
        let is_exiting = process::current().is_exiting();
        wishes.set(Wishes::USER_ONLY, self.flags & abi::UFFD_USER_MODE_ONLY != 0 || is_exiting);
        wishes
    }

    fn announce(&self, fault: WatchedFault) -> u64 {
        let message = Message::fault(&fault, self.features.load(Ordering::Relaxed));
        self.queue.lock().add_fault(round_down(fault.address), message)
    }

    fn withdraw(&self, ticket: u64) {
        self.queue.lock().remove_fault(ticket);
    }

    fn wait(&self, ticket: u64, origin: Origin) -> Waited {
        self.note_arrival();
        let is_over = || {
            let queue = self.queue.lock();
            queue.is_released || !queue.has_fault(ticket)
        };
        let waited = match origin {
            Origin::User => match self.answered.wait_interruptible(None, || is_over().then_some(())) {
                Ok(()) => Waited::Woken,
                Err(_) => Waited::Interrupted,
            },
            Origin::Kernel => self.wait_unless_leaving(is_over),
        };
        self.withdraw(ticket);
        waited
    }

    fn wake(&self, range: PageRange) {
        let any = self.queue.lock().answer(range);
        if any {
            self.answered.wake_all();
        }
    }

    fn change_begins(&self) {
        self.changing.fetch_add(1, Ordering::Relaxed);
    }

    fn is_changing(&self) -> bool {
        self.changing.load(Ordering::Relaxed) > 0
    }

    fn tell(&self, event: Event<Self>) {
        let told = match event {
            Event::Fork(child) => Told::Fork(child),
            Event::Remap { from, to, length } => Told::Message(Message::remap(from, to, length)),
            Event::Remove(range) => Told::Message(Message::remove(range)),
            Event::Unmap(range) => Told::Message(Message::unmap(range)),
        };
        let ticket = self.queue.lock().add_event(told);
        self.note_arrival();
        self.wait_unless_leaving(|| {
            let queue = self.queue.lock();
            queue.is_released || !queue.has_event(ticket)
        });
        let unread = self.queue.lock().remove_event(ticket);
        if let Some(Told::Fork(child)) = unread {
            // Nobody will ever listen to it.
            child.release();
        }
        self.changing.fetch_sub(1, Ordering::Relaxed);
    }

    fn for_child(&self, child: &Weak<AddressSpace>) -> Arc<Self> {
        let context = Self::new(child, self.flags);
        context.features.store(self.features.load(Ordering::Relaxed), Ordering::Release);
        context
    }
}
