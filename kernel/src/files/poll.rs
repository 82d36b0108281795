//! Looking at several files once: the common part of `poll` and `select`.
//!
//! A program may ask about as many files as it can have numbers for, a million of them, so the list is made of pieces, and is refused where the
//! memory for it cannot be had.

use super::readiness::{Observer, Observers, Readiness};
use super::{Description, waiting};
use crate::sync::WaitQueue;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// A task that looks at several files.
struct Poller {
    notified: AtomicBool,
    queue: WaitQueue,
}

impl Observer for Poller {
    fn notify(&self, _change: Readiness) {
        self.notified.store(true, Ordering::Release);
        self.queue.wake_all();
    }
}

/// One number that is asked about.
pub(crate) struct Wanted {
    pub(crate) number: i32,
    /// None if it stands for nothing that can be looked at.
    pub(crate) file: Option<Arc<Description>>,
    /// What counts.
    pub(crate) events: Readiness,
    /// What it is ready for, once that is known.
    pub(crate) found: Readiness,
}

impl Wanted {
    fn look(&self) -> Readiness {
        match &self.file {
            Some(file) => file.readiness() & (self.events | Readiness::ALWAYS),
            None => Readiness::empty(),
        }
    }
}

/// All that one call asks about, in its order.
#[derive(Default)]
pub(crate) struct WantedList {
    pieces: Vec<Vec<Wanted>>,
}

impl WantedList {
    /// Entries of a piece.
    const PIECE: usize = 1024;

    /// # Errors
    /// ENOMEM.
    pub(crate) fn push(&mut self, wanted: Wanted) -> Result<(), Errno> {
        let last = self.pieces.last_mut().filter(|piece| piece.len() < Self::PIECE);
        let piece = match last {
            Some(piece) => piece,
            None => {
                self.pieces.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
                self.pieces.push(Vec::new());
                self.pieces.last_mut().ok_or(Errno::ENOMEM)?
            }
        };
        piece.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        piece.push(wanted);
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Wanted> {
        self.pieces.iter().flatten()
    }

    /// Looks at all files; says whether any is ready.
    fn look(&mut self) -> bool {
        let mut any = false;
        for wanted in self.pieces.iter_mut().flatten() {
            wanted.found = wanted.look();
            any |= !wanted.found.is_empty();
        }
        any
    }

    fn observers(&self) -> impl Iterator<Item = &Observers> {
        let files = self.iter().filter_map(|wanted| wanted.file.as_ref());
        files.flat_map(|file| file.file().observers()).flatten()
    }

    /// Waits until one of the files is ready or `deadline` (nanoseconds since boot; None for ever) has passed, and
    /// notes what each is ready for.
    ///
    /// # Errors
    /// ENOMEM, or a restart code when interrupted.
    pub(crate) fn wait(&mut self, deadline: Option<u64>) -> Result<(), Errno> {
        if self.look() || deadline.is_some_and(|deadline| deadline <= crate::time::now()) {
            return Ok(());
        }
        let poller = Arc::new(Poller { notified: AtomicBool::new(false), queue: WaitQueue::new() });
        let observer: Arc<dyn Observer> = poller.clone();
        let watched = self.observers().try_for_each(|observers| observers.add(observer.clone()));
        let result = watched.and_then(|()| self.wait_for(&poller, deadline));
        self.observers().for_each(|observers| observers.remove(&observer));
        result
    }

    fn wait_for(&mut self, poller: &Poller, deadline: Option<u64>) -> Result<(), Errno> {
        while !self.look() {
            let notified = || poller.notified.swap(false, Ordering::AcqRel).then_some(());
            if waiting::wait_until(&poller.queue, deadline, notified)?.is_none() {
                break;
            }
        }
        Ok(())
    }
}
