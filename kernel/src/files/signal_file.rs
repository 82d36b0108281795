//! Signals as a file: what `signalfd` makes.
//!
//! A read takes signals of the set from those that are pending for the reader, as `sigtimedwait` does, and waits if there are none. Who has the file
//! from another process reads its own signals; but what it waits for with `poll` or `epoll` is news of the process that made it.

use super::file::{File, Patience};
use super::readiness::{Observers, Readiness};
use super::transfer::Destination;
use super::waiting;
use crate::process::current;
use crate::process::signal::{Arrivals, RECORD_SIZE, SignalSet, pending, take_pending};
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::sync::Arc;

pub(crate) struct SignalFile {
    wanted: SpinLock<SignalSet>,
    /// Those of the process that made it.
    arrivals: Arc<Arrivals>,
}

impl SignalFile {
    pub(crate) fn new(wanted: SignalSet) -> Self {
        Self { wanted: SpinLock::new(wanted), arrivals: current().process().arrivals().clone() }
    }

    /// Has it show other signals from now on.
    pub(crate) fn set(&self, wanted: SignalSet) {
        *self.wanted.lock() = wanted;
        self.arrivals.announce();
    }

    fn wanted(&self) -> SignalSet {
        *self.wanted.lock()
    }
}

impl File for SignalFile {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        let most = to.remaining() / RECORD_SIZE;
        if most == 0 {
            return Err(Errno::EINVAL);
        }
        let own = current().process().arrivals().clone();
        let mut done = 0;
        while done < most {
            // Only the first is waited for.
            let patience = if done == 0 { patience } else { Patience::Refuse };
            match waiting::attempt(own.queue(), patience, || take_pending(self.wanted())) {
                Ok(information) => to.put(&information.to_record())?,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            };
            done += 1;
        }
        Ok(done * RECORD_SIZE)
    }

    fn readiness(&self) -> Readiness {
        if (pending() & self.wanted()).is_empty() { Readiness::empty() } else { Readiness::READABLE }
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(self.arrivals.observers()), None]
    }
}
