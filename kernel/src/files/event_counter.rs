//! Event counters: what `eventfd2` makes.
//!
//! A 64-bit number to which writes add and which a read takes, whole or (as a semaphore) by one. A read of 0
//! and a write that would pass the largest value wait.

use super::file::{File, Patience};
use super::readiness::{Observers, Readiness};
use super::transfer::{Destination, Source};
use super::waiting;
use crate::sync::{SpinLock, WaitQueue};
use crate::syscall::Errno;

/// The largest value that a counter can have.
const MOST: u64 = u64::MAX - 1;

pub(crate) struct EventCounter {
    value: SpinLock<u64>,
    semaphore: bool,
    changed: WaitQueue,
    observers: Observers,
}

impl EventCounter {
    pub(crate) fn new(value: u64, semaphore: bool) -> Self {
        Self { value: SpinLock::new(value), semaphore, changed: WaitQueue::new(), observers: Observers::new() }
    }
}

impl File for EventCounter {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if to.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let mut attempt = || {
            let mut value = self.value.lock();
            let taken = if self.semaphore { (*value).min(1) } else { *value };
            *value -= taken;
            (taken > 0).then_some(taken)
        };
        let taken = waiting::attempt(&self.changed, patience, &mut attempt)?;
        self.changed.wake_all();
        self.observers.announce(Readiness::WRITABLE);
        to.put(&taken.to_ne_bytes())
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        patience: Patience,
    ) -> Result<usize, Errno> {
        let mut bytes = [0; 8];
        if from.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        if from.take(&mut bytes)? < 8 {
            return Err(Errno::EFAULT);
        }
        let added = u64::from_ne_bytes(bytes);
        if added == u64::MAX {
            return Err(Errno::EINVAL);
        }
        let mut attempt = || {
            let mut value = self.value.lock();
            let sum = value.checked_add(added).filter(|&sum| sum <= MOST)?;
            *value = sum;
            Some(())
        };
        waiting::attempt(&self.changed, patience, &mut attempt)?;
        self.changed.wake_all();
        self.observers.announce(Readiness::READABLE);
        Ok(8)
    }

    fn readiness(&self) -> Readiness {
        let value = *self.value.lock();
        let mut readiness = Readiness::empty();
        if value > 0 {
            readiness |= Readiness::READABLE;
        }
        if value < MOST {
            readiness |= Readiness::WRITABLE;
        }
        readiness
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.observers), None]
    }
}
