//! What a file is ready for, and who wants to hear when that changes.
//!
//! `poll`, `select` and `epoll` look at many files at once, so they cannot sleep on the files' own wait
//! queues. Each file that can make somebody wait has `Observers`; whoever looks adds itself *first*, asks
//! for the readiness *then*, and sleeps last. A change between asking and sleeping therefore reaches it.
//!
//! An observer is told under the list's lock and must not call back into the same list. It takes itself
//! off the list with `remove` before it goes away, so the list never drops the last reference to one.

use crate::sync::InterruptLock;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

bitflags::bitflags! {
    /// The events of `poll(2)`; epoll's low bits have the same values.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Readiness: u32 {
        const INPUT = 0x1;
        const PRIORITY = 0x2;
        const OUTPUT = 0x4;
        const ERROR = 0x8;
        const HANGUP = 0x10;
        const INVALID = 0x20;
        const READ_NORMAL = 0x40;
        const READ_BAND = 0x80;
        const WRITE_NORMAL = 0x100;
        const WRITE_BAND = 0x200;
        const MESSAGE = 0x400;
        const READ_HANGUP = 0x2000;
    }
}

impl Readiness {
    /// There is something to read.
    pub(crate) const READABLE: Self = Self::INPUT.union(Self::READ_NORMAL);
    /// There is room to write.
    pub(crate) const WRITABLE: Self = Self::OUTPUT.union(Self::WRITE_NORMAL);
    /// What is reported whether or not it was asked for.
    pub(crate) const ALWAYS: Self = Self::ERROR.union(Self::HANGUP);
}

/// Somebody who looks at several files.
pub(crate) trait Observer: Send + Sync {
    /// One of the files may now be ready for `change`. May be called in an interrupt: must not sleep.
    fn notify(&self, change: Readiness);
}

/// The observers of one file.
pub(crate) struct Observers {
    list: InterruptLock<Vec<Arc<dyn Observer>>>,
    /// Lets the common case, a file that nobody polls, go without the lock.
    any: AtomicBool,
}

impl Observers {
    pub(crate) const fn new() -> Self {
        Self { list: InterruptLock::new(Vec::new()), any: AtomicBool::new(false) }
    }

    /// # Errors
    /// ENOMEM.
    pub(crate) fn add(&self, observer: Arc<dyn Observer>) -> Result<(), Errno> {
        let mut list = self.list.lock();
        list.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        list.push(observer);
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn remove(&self, observer: &Arc<dyn Observer>) {
        let mut list = self.list.lock();
        let removed = list.iter().position(|other| Arc::ptr_eq(other, observer)).map(|at| list.swap_remove(at));
        self.any.store(!list.is_empty(), Ordering::Release);
        drop(list);
        drop(removed);
    }

    /// Tells every observer. The caller has already made the change, under the lock that askers take too.
    pub(crate) fn announce(&self, change: Readiness) {
        // An observer that saw the file as it was before the change has taken the file's lock before the
        // change did, and set `any` earlier still: this load cannot miss it.
        if self.any.load(Ordering::Acquire) {
            for observer in self.list.lock().iter() {
                observer.notify(change);
            }
        }
    }
}
