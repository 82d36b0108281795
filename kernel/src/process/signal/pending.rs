//! Signals that were sent and not yet delivered, of one thread or of a whole process.
//!
//! Signals 1..=31 are pending or not: a second instance is dropped and the first one's information stays.
//! Real-time signals queue in order. The places of the first 31 are part of the structure, so that sending
//! one (as a timer's interrupt does) allocates nothing. They lie in the heap: several kilobytes would be too
//! much for a kernel stack on the way there.

use super::information::{Information, Origin};
use super::set::{Signal, SignalSet};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// How many real-time signals one queue holds. Linux limits them by user (RLIMIT_SIGPENDING); this is the
/// same order.
const QUEUE_LIMIT: usize = 4096;

/// How many signals do not queue.
const STANDARD: usize = 31;

/// The queue was full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;

/// Pending signals.
pub(crate) struct Pending {
    set: SignalSet,
    standard: Vec<Option<Information>>,
    queued: VecDeque<Information>,
}

impl Pending {
    /// Nothing pending.
    pub(crate) fn new() -> Pending {
        Pending { set: SignalSet::EMPTY, standard: vec![None; STANDARD], queued: VecDeque::new() }
    }

    /// Which signals are pending.
    pub(crate) fn set(&self) -> SignalSet {
        self.set
    }

    /// Adds one instance. Sending a standard signal twice keeps the first.
    ///
    /// # Errors
    /// [`Full`] if it is a real-time signal and the queue is at its limit.
    pub(crate) fn push(&mut self, information: Information) -> Result<(), Full> {
        let signal = information.signal;
        if signal.is_real_time() {
            if self.queued.len() >= QUEUE_LIMIT {
                return Err(Full);
            }
            self.queued.push_back(information);
        } else if !self.set.contains(signal) {
            self.standard[signal.index()] = Some(information);
        }
        self.set.insert(signal);
        Ok(())
    }

    /// Takes the instance that is next in order of delivery among `wanted`.
    pub(crate) fn take(&mut self, wanted: SignalSet) -> Option<Information> {
        let signal = (self.set & wanted).next()?;
        if signal.is_real_time() {
            self.take_queued(signal)
        } else {
            self.set.remove(signal);
            self.standard[signal.index()].take()
        }
    }

    fn take_queued(&mut self, signal: Signal) -> Option<Information> {
        let at = self.queued.iter().position(|one| one.signal == signal)?;
        let taken = self.queued.remove(at);
        if !self.queued.iter().any(|one| one.signal == signal) {
            self.set.remove(signal);
        }
        taken
    }

    /// If an instance from the same POSIX timer as `information` is pending, adds the expiries that
    /// `information` stands for to its overrun count and returns true.
    pub(crate) fn add_overrun(&mut self, information: &Information) -> bool {
        let Origin::Timer { timer: id, overrun: more, .. } = information.origin else { return false };
        let places = self.standard.iter_mut().flatten().chain(self.queued.iter_mut());
        for one in places {
            if let Origin::Timer { timer, overrun, .. } = &mut one.origin
                && *timer == id
            {
                *overrun = overrun.saturating_add(more).saturating_add(1);
                return true;
            }
        }
        false
    }

    /// Drops every instance of the signals in `unwanted`.
    pub(crate) fn discard(&mut self, unwanted: SignalSet) {
        self.set = self.set & !unwanted;
        for place in &mut self.standard {
            if place.is_some_and(|one| unwanted.contains(one.signal)) {
                *place = None;
            }
        }
        self.queued.retain(|one| !unwanted.contains(one.signal));
    }
}
