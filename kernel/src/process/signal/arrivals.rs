//! News of a process's signals, for those who wait for them by a file.

use crate::files::{Observers, Readiness};
use crate::sync::WaitQueue;

/// Who waits for signals of one process without taking them by a handler.
pub(crate) struct Arrivals {
    queue: WaitQueue,
    observers: Observers,
}

impl Arrivals {
    pub(crate) const fn new() -> Arrivals {
        Arrivals { queue: WaitQueue::new(), observers: Observers::new() }
    }

    /// Says that something is pending that was not. Callable from interrupts.
    pub(crate) fn announce(&self) {
        self.queue.wake_all();
        self.observers.announce(Readiness::READABLE);
    }

    pub(crate) fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }
}
