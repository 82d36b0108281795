//! Whoever is told of an area's faults instead of the kernel: a program behind a `userfaultfd`.
//!
//! An area may be *watched* ([`Watch`]) by one [`Monitor`]. A fault in it that the monitor asked for is not resolved here: it is told, and
//! the thread waits until the monitor has filled the page in, given the right to write back, or says to look again
//! (`userfault*.rs`). This crate decides what is told, and when in an operation; the queue in which a monitor finds it, and the
//! sleeping, are the [`Monitor`]'s own.
//!
//! **No wake-up is lost.** A fault is announced in the monitor's queue first, and only then the entry is looked at once more; whoever
//! resolves it changes the entry first, and wakes who is in the queue afterwards. Both go through the queue's lock: if the one who
//! resolves comes there first, then the second look finds what it did; else it finds the announcement.
//!
//! **Nobody waits for what is gone.** An announcement is made under the area lock, shared. What takes an area from its monitor (`munmap`,
//! `mremap`, the end of the monitor) holds it exclusively, and wakes the range.

use alloc::sync::{Arc, Weak};

use crate::address_space::AddressSpace;
use crate::environment::Environment;
use crate::range::PageRange;

bitflags::bitflags! {
    /// Which faults of an area a monitor wants. The bits are `UFFDIO_REGISTER`'s.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Watch: u64 {
        /// Pages that are not there.
        const MISSING = 1;
        /// Stores to pages that it guards.
        const STORES = 2;
        /// Pages that the object has, and that are not mapped yet.
        const MINOR = 4;
    }

    /// What a monitor wants to be told, or not, beside the faults.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Wishes: u8 {
        /// Children are watched as their parents are, and it is told of each.
        const FORK = 1;
        /// Areas that move stay watched, and it is told.
        const REMAP = 2;
        /// It is told before pages are dropped by `madvise`.
        const REMOVE = 4;
        /// It is told after areas are unmapped.
        const UNMAP = 8;
        /// It is told of no fault: each is a `SIGBUS`.
        const SIGNAL = 16;
        /// It is told of no fault of the kernel's own: each is an error of the system call.
        const USER_ONLY = 32;
    }
}

/// Whose access it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The program's own. A signal ends its wait: it will try again.
    User,
    /// The kernel's, in a system call of the program's. Only the program's end ends its wait.
    Kernel,
}

/// Why a fault is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The page is not there.
    Missing,
    /// The page is guarded, and this is a store.
    Guarded,
    /// The object has the page, and it is not mapped.
    Minor,
}

/// A fault that is told.
#[derive(Clone, Copy, Debug)]
pub struct WatchedFault {
    /// The address that was accessed, not rounded.
    pub address: u64,
    /// Whether it is a store.
    pub write: bool,
    /// Why it is told.
    pub reason: Reason,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody says that it is worth looking again.
    Woken,
    /// By something else.
    Interrupted,
}

/// A change of the address space that is told.
pub enum Event<M> {
    /// A child was made, whose areas this monitor watches.
    Fork(Arc<M>),
    /// What was mapped from `from` on is at `to` now.
    Remap {
        /// The old address.
        from: u64,
        /// The new address.
        to: u64,
        /// How many bytes it had.
        length: u64,
    },
    /// These pages are about to be dropped.
    Remove(PageRange),
    /// These addresses were unmapped.
    Unmap(PageRange),
}

/// A monitor, as this crate needs it.
pub trait Monitor<E: Environment<Monitor = Self>>: Send + Sync + Sized + 'static {
    /// What it wants to be told.
    fn wishes(&self) -> Wishes;

    /// Puts a fault in its queue; says which it is there. Called with the area lock held shared, and must not sleep.
    fn announce(&self, fault: WatchedFault) -> u64;

    /// Takes a fault out of its queue that has been resolved already.
    fn withdraw(&self, ticket: u64);

    /// Waits until a fault is out of the queue. Called without locks.
    fn wait(&self, ticket: u64, origin: Origin) -> Waited;

    /// Takes all faults in a range out of the queue, and wakes them. Must not sleep.
    fn wake(&self, range: PageRange);

    /// A change begins of which it will be [told](Monitor::tell): what it fills in meanwhile may be meant for what was there before.
    /// Called with the area lock held, and must not sleep.
    fn change_begins(&self);

    /// Whether a change that has begun has not been told yet.
    fn is_changing(&self) -> bool;

    /// Tells of a change, and waits until that has been heard; then the change is over. Called without locks.
    fn tell(&self, event: Event<Self>);

    /// A monitor of the same kind for a child, which nobody listens to yet.
    fn for_child(&self, child: &Weak<AddressSpace<E>>) -> Arc<Self>;
}

/// For machines on which nobody watches.
#[derive(Debug)]
pub enum Unmonitored {}

impl<E: Environment<Monitor = Self>> Monitor<E> for Unmonitored {
    fn wishes(&self) -> Wishes {
        match *self {}
    }

    fn announce(&self, _fault: WatchedFault) -> u64 {
        match *self {}
    }

    fn withdraw(&self, _ticket: u64) {
        match *self {}
    }

    fn wait(&self, _ticket: u64, _origin: Origin) -> Waited {
        match *self {}
    }

    fn wake(&self, _range: PageRange) {
        match *self {}
    }

    fn change_begins(&self) {
        match *self {}
    }

    fn is_changing(&self) -> bool {
        match *self {}
    }

    fn tell(&self, _event: Event<Self>) {
        match *self {}
    }

    fn for_child(&self, _child: &Weak<AddressSpace<E>>) -> Arc<Self> {
        match *self {}
    }
}
