//! Pages on their way to their slots: written, and let go of.
//!
//! The entries of all of them have been flushed (`swap_out`). Who came for his page meanwhile has it, and it is not written: what a slot is given to has a
//! number (`swap`'s *New*), so that a page which has come back and gone out anew, and waits for another flush, is not taken for the one that went. Runs of neighbouring slots are one
//! transfer each; all are begun before the first is waited for.
//!
//! A page goes from memory when its slot holds it and nothing but the cache refers to it. One that somebody mapped at that moment, or that was read and never
//! claimed, is found again by who looks for idle ones, at the second look.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::store::{Direction, Store, Transfer};
use crate::swap::{Slot, Slots, Swap};
use crate::swap_disk::State;

/// A page that has just been given its slot, and is to be written there.
pub(crate) struct Departure {
    pub(crate) slot: Slot,
    pub(crate) time: u64,
}

impl<E: Environment> Swap<E> {
    /// Lets go of pages that nobody has mapped since the last time, and whose slots hold them; says how many.
    pub(crate) fn drop_idle(&self) -> usize {
        let mut slots = self.slots.lock();
        let mut gone = Vec::new();
        for number in slots.numbers() {
            let Some(disk) = slots.disk(Slot { disk: number, page: 0 }) else { continue };
            for (page, cached) in &mut disk.cached {
                let is_idle = cached.is_alone();
                if let State::Here { was_idle } = &mut cached.state {
                    if is_idle && *was_idle {
                        gone.push(Slot { disk: number, page: *page });
                    }
                    *was_idle = is_idle;
                }
            }
        }
        gone.iter().for_each(|slot| slots.drop_cached(*slot));
        gone.len()
    }

    /// Lets go of those of these slots' pages that nobody maps any more; says how many.
    pub(crate) fn drop_unmapped(&self, joined: &[Slot]) -> usize {
        let mut slots = self.slots.lock();
        let gone = joined.iter().filter(|slot| {
            let cached = slots.disk(**slot).and_then(|disk| disk.cached.get(&slot.page));
            let goes =
                cached.is_some_and(|cached| matches!(cached.state, State::Here { .. }) && cached.is_alone());
            if goes {
                slots.drop_cached(**slot);
            }
            goes
        });
        gone.count()
    }

    /// Writes pages to their slots, whose entries have been flushed, and lets those go that nobody has come for; says how many went.
    pub(crate) fn write_out(&self, environment: &E, mut departures: Vec<Departure>) -> usize {
        // Neighbouring slots are written together.
        departures.sort_unstable_by_key(|departure| departure.slot);
        let mut runs = Vec::new();
        let mut rest = &departures[..];
        while !rest.is_empty() {
            let (done, run) = self.slots.lock().depart(rest);
            rest = &rest[done..];
            if let Some(run) = run {
                let frames = run.frames;
                let kept = Begun {
                    first: run.first,
                    pages: frames.len() as u32,
                    store: run.store,
                    transfer: run.transfer,
                };
                kept.store.begin(Direction::Out, kept.first.page.into(), frames, &kept.transfer);
                runs.push(kept);
            }
        }
        runs.into_iter().map(|run| self.wait_for(environment, &run)).sum()
    }

    fn wait_for(&self, environment: &E, run: &Begun<E>) -> usize {
        let is_written = run.store.wait(&run.transfer).is_ok();
        let count = if is_written { &self.went } else { &self.failed };
        count.fetch_add(run.pages.into(), Relaxed);
        let mut slots = self.slots.lock();
        let pages = (run.first.page..run.first.page + run.pages).map(|page| Slot { page, ..run.first });
        pages.filter(|slot| slots.has_departed(environment, *slot, is_written)).count()
    }
}

/// Neighbouring slots that are to be written.
struct Run<E: Environment> {
    first: Slot,
    store: Arc<dyn Store<E>>,
    transfer: Arc<Transfer>,
    frames: Vec<FrameRef<E>>,
}

/// Some that are being written.
struct Begun<E: Environment> {
    first: Slot,
    pages: u32,
    store: Arc<dyn Store<E>>,
    transfer: Arc<Transfer>,
}

impl<E: Environment> Slots<E> {
    /// Takes as many pages as one transfer carries from the front of what departs, and how many of `departures` that are. Left out is what
    /// owners came back for.
    fn depart(&mut self, departures: &[Departure]) -> (usize, Option<Run<E>>) {
        let mut run: Option<Run<E>> = None;
        for (index, Departure { slot, time }) in departures.iter().enumerate() {
            let Some(disk) = self.disk(*slot) else { continue };
            let store = disk.store.clone();
            let Some(cached) = disk.cached.get_mut(&slot.page) else { continue };
            if !matches!(&cached.state, State::New(entered) if entered == time) {
                continue;
            }
            let run = match &mut run {
                Some(run) if run.takes(*slot) => run,
                Some(_) => return (index, run),
                None => {
                    run.insert(Run { first: *slot, store, transfer: Transfer::pending(), frames: Vec::new() })
                }
            };
            cached.state = State::Leaving;
            run.frames.push(cached.frame.clone());
        }
        (departures.len(), run)
    }

    /// A page was written, or could not be; says whether it is gone from memory.
    fn has_departed(&mut self, environment: &E, slot: Slot, is_written: bool) -> bool {
        let Some(disk) = self.disk(slot) else { return false };
        let is_owned = disk.owners(environment, slot.page) > 0;
        let Some(cached) = disk.cached.get_mut(&slot.page) else { return false };
        let is_alone = cached.is_alone();
        cached.state = if is_written { State::Here { was_idle: false } } else { State::Stuck };
        match (is_owned, is_written) {
            (false, false) => disk.spoil(environment, slot.page),
            (false, true) => drop(disk.cached.remove(&slot.page)),
            (true, true) if is_alone => {
                self.drop_cached(slot);
                return true;
            }
            (true, _) => {}
        }
        false
    }

    /// The page of a slot is on the disk alone.
    fn drop_cached(&mut self, slot: Slot) {
        let Some(disk) = self.disk(slot) else { return };
        if let Some(cached) = disk.cached.remove(&slot.page) {
            self.forget_frame(cached.frame.number(), slot);
        }
    }
}

impl<E: Environment> Run<E> {
    /// Whether this slot is the next of it.
    fn takes(&self, slot: Slot) -> bool {
        let pages = self.frames.len() as u32;
        let next = Slot { page: self.first.page + pages, ..self.first };
        slot == next && u64::from(pages) < self.store.most_pages()
    }
}
