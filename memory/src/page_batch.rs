//! Entries that are changed by the reverse way, in any number of address spaces, and flushed together.
//!
//! A thin layer over `coherence`'s batch that knows our entries, as `changes` is one over its gather. Whoever has one of these
//! holds no area lock: it finds entries through an object's list (`mappings`), changes them under their table's lock, and is met by
//! every operation that has the area lock. So each of those asks [`Changes::settle`](crate::changes::Changes::settle) under each
//! table lock that it takes. The frames go back to the allocator only after the batch's flush.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use coherence::{Batch, Cause, Deferred, Flushed, Recorded};

use crate::address_space::AddressSpace;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::frame::FrameNumber;
use crate::frame_list::FrameList;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::range::PAGE_SIZE;

/// Changes of entries that wait for one flush. Flushed when it is dropped; not to be dropped while an object's list is held.
pub(crate) struct PageBatch<'a, E: Environment> {
    environment: &'a E,
    /// `None` only after it was finished.
    batch: Option<Batch<'a, E::Platform, FrameList>>,
    /// Where something was recorded, and the last of it.
    spaces: Vec<(Arc<AddressSpace<E>>, Recorded)>,
    /// It may end without a flush.
    is_deferring: bool,
}

/// What a batch that was deferred holds: the references of the entries that it has taken out, and where something was recorded.
pub(crate) type Held<E> = (FrameList, Vec<(Weak<AddressSpace<E>>, Recorded)>);

/// Spaces that a deferred batch remembers. In others the next operation flushes once more than it need.
const MOST_SPACES: usize = 64;

impl<'a, E: Environment> PageBatch<'a, E> {
    pub(crate) fn new(environment: &'a E, cause: Cause) -> Self {
        let batch = environment.coherence().batch(cause, FrameList::default());
        Self { environment, batch: Some(batch), spaces: Vec::new(), is_deferring: false }
    }

    /// A batch that takes pages back, and may be deferred.
    pub(crate) fn deferring(environment: &'a E) -> Self {
        let batch = environment.coherence().batch(Cause::Reclaim, FrameList::default()).deferring();
        Self { environment, batch: Some(batch), spaces: Vec::new(), is_deferring: true }
    }

    /// A batch for pages that their object has lost: nobody uses them any more when it is over, also through entries that wait for their flush.
    pub(crate) fn concluding_absence(environment: &'a E) -> Self {
        let batch = environment.coherence().batch(Cause::Truncate, FrameList::default()).concluding_absence();
        Self { environment, batch: Some(batch), spaces: Vec::new(), is_deferring: false }
    }

    pub(crate) fn environment(&self) -> &'a E {
        self.environment
    }

    /// Takes out a page's entry, under its table's lock, with the reference that it held; says what it was. A guard stays.
    pub(crate) fn take_out(
        &mut self,
        space: &Arc<AddressSpace<E>>,
        leaf: &mut Leaf<'_, E>,
        address: u64,
    ) -> Entry {
        let keeps_guard = !is_made(Mistake::GuardGoesWithThePage);
        let left = if keeps_guard { leaf.entry(address).left_behind() } else { Entry::EMPTY };
        let old = leaf.replace(address, left);
        if self.is_deferring {
            self.environment.frames().note_waiting(old.frame());
        }
        // That an entry is not marked as used does not say that no CPU has it: such marks are taken without a flush (`reclaim`).
        if old.has(Bits::ACCESSED) || !is_made(Mistake::UnusedTakenForUncached) {
            self.changed(space, address, old, left);
        }
        if old.has(Bits::DIRTY) {
            self.environment.frames().note_dirty(old.frame());
        }
        if !space.is_zero_frame(old.frame()) {
            space.note_gone(1);
            self.release_later(old.frame());
        }
        old
    }

    /// Takes the mark of being used from a page's entry, under its table's lock; says whether it was there, or this is the first look. Not flushed
    /// (`reclaim` says why that is enough).
    pub(crate) fn age(&mut self, space: &Arc<AddressSpace<E>>, leaf: &mut Leaf<'_, E>, address: u64) -> bool {
        if is_made(Mistake::AgedWithoutTrace) {
            let unused = |old: Entry| old.has(Bits::ACCESSED).then(|| old.unused());
            return leaf.update(address, unused).is_some();
        }
        let aged = leaf.update(address, Entry::looked_at);
        if let Some((old, new)) = aged {
            self.changed(space, address, old, new);
        }
        aged.is_some()
    }

    /// Takes note of a change under the lock of the entry's table. `old` is what an atomic exchange returned.
    pub(crate) fn changed(&mut self, space: &Arc<AddressSpace<E>>, address: u64, old: Entry, new: Entry) {
        if let Some(batch) = &mut self.batch
            && let Some(recorded) = batch.change(space.space(), address, PAGE_SIZE, &old.into(), &new.into())
        {
            self.note_recorded(space, recorded);
        }
    }

    /// To be called under the lock of each table that is looked at: entries that are empty, or clean, may be so because of somebody
    /// who has not flushed yet.
    pub(crate) fn meet(&mut self, space: &Arc<AddressSpace<E>>) {
        if is_made(Mistake::EntriesTakenAsTheyAre) {
            return;
        }
        if let Some(recorded) = self.batch.as_mut().and_then(|batch| batch.meet(space.space())) {
            self.note_recorded(space, recorded);
        }
    }

    fn note_recorded(&mut self, space: &Arc<AddressSpace<E>>, recorded: Recorded) {
        match self.spaces.iter_mut().find(|(known, _)| Arc::ptr_eq(known, space)) {
            Some((_, latest)) => *latest = recorded,
            None => self.spaces.push((space.clone(), recorded)),
        }
    }

    /// Takes over the reference that an entry held, to be dropped after the flush.
    pub(crate) fn release_later(&mut self, frame: FrameNumber) {
        let Some(batch) = &mut self.batch else { return };
        if is_made(Mistake::HoleFreedBeforeFlush) {
            return self.environment.frames().release(self.environment.current_cpu(), frame);
        }
        if batch.list_mut().push(self.environment, frame).is_err() {
            // No memory for a longer list. The entry was recorded before, so this flush covers it.
            release(self.environment, batch.flush().into_inner(), self.is_deferring);
            let pushed = batch.list_mut().push(self.environment, frame);
            debug_assert!(pushed.is_ok(), "an empty list has room in place");
        }
    }

    /// Flushes if stores may still land in a page that was taken out, or taken as clean, while it was dirty.
    pub(crate) fn flush_written(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.flush_written();
        }
    }

    /// Ends without a flush, if all that was taken out can wait for one (`waiting`); else as [`PageBatch::finish`].
    pub(crate) fn defer(mut self) -> Option<Deferred<Held<E>>> {
        match self.batch.take()?.defer() {
            Ok(deferred) => {
                let spaces = self.spaces.iter().take(MOST_SPACES);
                let spaces = spaces.map(|(space, recorded)| (Arc::downgrade(space), *recorded)).collect();
                Some(deferred.map(|frames| (frames, spaces)))
            }
            Err(flushed) => {
                self.conclude_with(flushed);
                None
            }
        }
    }

    /// Flushes, then gives the frames back. When this returns, no CPU can reach any of them through the old entries.
    pub(crate) fn finish(mut self) {
        self.conclude();
    }

    fn conclude(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.conclude_with(batch.finish());
        }
    }

    fn conclude_with(&self, flushed: Flushed<FrameList>) {
        for (space, recorded) in &self.spaces {
            flushed.settles(space.space(), *recorded);
        }
        release(self.environment, flushed.into_inner(), self.is_deferring);
    }
}

/// Gives back what entries referred to, all of which have been flushed.
fn release<E: Environment>(environment: &E, frames: FrameList, has_waited: bool) {
    if has_waited {
        frames.have_waited(environment);
    }
    frames.release(environment);
}

impl<E: Environment> Drop for PageBatch<'_, E> {
    fn drop(&mut self) {
        self.conclude();
    }
}
