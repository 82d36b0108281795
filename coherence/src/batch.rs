//! Physical unmapping: changes are only recorded, and one flush at the end serves all of them, in any number of spaces.
//!
//! Reclaim, migration and writeback take pages away behind the programs' backs. A program cannot tell whether that has happened, so
//! nothing is owed to it at once; only *before a frame is freed, copied or written out* must no CPU use the old entries. A
//! [`Batch`] lets the flush wait until then:
//!
//! ```text
//!   agent, under the table's lock                    whoever comes under that lock afterwards
//!   change the entry
//!   advance the space's generation: G
//!   fence  <--- pairs with the fence in switch.rs
//!   add the active CPUs to the batch's
//!   store G in the space's `batched` ------------> load `batched` (acquire): not 0
//!   …                                                if it is to decide from the entries that nothing need be flushed:
//!   interrupt the batch's CPUs, wait                 flush everything (settle), then go on
//!   free, copy, write out
//! ```
//!
//! * **One round ends a batch.** It names no space: each target compares what it has caught up with to the generation of whatever
//!   space it has loaded, and flushes if it is behind (`decision.rs`). A CPU that has flushed since, for another reason, does
//!   nothing. One that has left the space compares when it comes back, as always.
//! * **The generation is what carries the debt.** Because each record advances it, no CPU can claim to be up to date without having
//!   dropped what was recorded: a later request for a single page finds a gap and drops everything. A round that only asked
//!   "flush, no generation" would be taken for an old one.
//! * **A CPU that is not seen in `active` sees the generation**, as in any request: the fence is the same.
//! * **Who finds the entry changed must not believe that all is done.** munmap meets an entry that an agent has emptied, has nothing to
//!   flush, and would return while a CPU still uses it. So under each table's lock it asks [`Gather::settle`] (or
//!   [`Coherence::settle`]): `batched` is not 0, so it flushes everything. That must be asked again each time a lock is taken.
//! * **A flush of everything settles** what was recorded before its own generation, and nothing else: it takes G back only if G is still
//!   there. A flag, or a counter that is cleared at the end, would lose what another agent recorded meanwhile.
//! * **The other way round**, an agent may find an entry that munmap has emptied and not flushed yet. If it concludes anything from
//!   that (the page is mapped nowhere, or clean), it says so with [`Batch::meet`]. What *deferred* batches have emptied was clean, and is
//!   still referred to, so that only who promises that nobody uses the page any more need say more: [`Batch::concluding_absence`].
//!
//! **Dirty pages.** A store through a cached entry that is not marked dirty walks the tables first, finds the entry gone and faults. So a
//! page whose entries were all clean may be thought clean at once. If one was dirty, stores may go on landing until the flush:
//! [`Batch::flush_written`] before its contents are read.
//!
//! **Devices** that walk a space's tables (`devices.rs`) have no generations, and are told of each change at once. A machine that
//! flushes remotely is interrupted for a batch all the same.
//!
//! **A flush may wait longer than its batch**, until a frame is needed: `epochs.rs`.
//!
//! Without the mechanism `batch`, every change is flushed where it is made.

use crate::errand::Errand;
use crate::fault::Fault;
use crate::policy::{Decision, Translation, Why};
use crate::remote::Reach;
use crate::sync::{AtomicU64, Ordering, constructor, fence, is_unwinding};
use crate::{
    Cause, Coherence, CpuSet, Event, Executed, Flush, Flushed, Gather, Generation, Platform, Row, Space,
};

/// What is still to be flushed of physical changes, and a caller's list `L` of what may be freed afterwards.
///
/// Made by [`Coherence::batch`]. It belongs to no CPU and holds no lock, so its owner may sleep and move. Dropping it flushes first
/// and drops the list then. Batches of several agents may go on in one space at the same time.
#[must_use = "a batch that is dropped flushes at once; keep it until something is to be freed"]
pub struct Batch<'a, P: Platform, L> {
    pub(crate) coherence: &'a Coherence<P>,
    cause: Cause,
    /// Who was active in a space when something was recorded there.
    pub(crate) concerned: CpuSet,
    pub(crate) is_outstanding: bool,
    /// What can wait need not be flushed at the end.
    pub(crate) is_deferring: bool,
    /// Its owner concludes from an entry that is gone that nobody uses the page.
    concludes_absence: bool,
    /// Something that cannot wait is recorded.
    pub(crate) is_urgent: bool,
    /// A recorded entry was dirty.
    is_written: bool,
    /// `None` only after `finish` took it.
    pub(crate) list: Option<L>,
}

/// What a batch has recorded in one space; of two, the greater covers both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "with this, a flushed batch can say that nobody else need flush for it"]
pub struct Recorded(Generation);

impl<P: Platform> Coherence<P> {
    /// Begins a batch.
    pub fn batch<L>(&self, cause: Cause, list: L) -> Batch<'_, P, L> {
        Batch {
            coherence: self,
            cause,
            concerned: CpuSet::EMPTY,
            is_outstanding: false,
            is_deferring: false,
            concludes_absence: false,
            is_urgent: false,
            is_written: false,
            list: Some(list),
        }
    }

    /// Flushes the space if a batch has recorded something in it that nobody has flushed yet; says whether it has.
    ///
    /// To be called, under the lock of the entry's table, by whoever is to decide from an entry that nothing need be flushed:
    /// before it copies a page that cannot be written, and before it maps a page where none is. An operation that gathers calls
    /// [`Gather::settle`] instead. The rules of [`flush`](Coherence::flush) hold.
    #[inline]
    pub fn settle(&self, space: &Space, cause: Cause) -> bool {
        let is_needed = self.owes_for_batches(space);
        if is_needed {
            self.settle_now(space, cause);
        }
        is_needed
    }

    pub(crate) fn settle_now(&self, space: &Space, cause: Cause) {
        self.counters().count(Row::Event(Event::BatchSettled));
        self.flush(space, Flush::all(), cause);
    }

    #[inline]
    fn owes_for_batches(&self, space: &Space) -> bool {
        let owes_for_deferred = space.deferred.is_outstanding() && !self.has_fault(Fault::DeferredNotSettled);
        owes_for_deferred || self.owes_for_urgent_batches(space)
    }

    /// Whether a batch owes a flush that did not wait for an end which may be far away.
    #[inline]
    pub(crate) fn owes_for_urgent_batches(&self, space: &Space) -> bool {
        space.batched.is_outstanding() && !self.has_fault(Fault::BatchNotSettled)
    }
}

impl<P: Platform, L> Gather<'_, P, L> {
    /// Adds the flush that batches have left pending in the space, if any, to the flush of this gather. To be called under the lock
    /// of each table whose entries are looked at, each time it is taken, as the entries may have been changed by a batch.
    #[inline]
    pub fn settle(&mut self) {
        if self.coherence.owes_for_batches(self.space) {
            self.coherence.counters().count(Row::Event(Event::BatchSettled));
            self.add(Flush::all());
            self.concerns_everyone();
        }
    }
}

impl<P: Platform, L> Batch<'_, P, L> {
    /// The same batch, of an agent that promises that no CPU uses what it finds gone (truncation, holes). To be called before it [meets](Batch::meet) anything.
    pub fn concluding_absence(mut self) -> Self {
        self.concludes_absence = true;
        self
    }

    /// Takes note that the entry for the `size` bytes at `address` has been changed from `old` to `new`, if that needs a flush.
    ///
    /// To be called under the lock of the entry's table, before it is released. `old` is what an atomic exchange returned.
    /// `None` if there is nothing to wait for: the [policy](crate::policy) found nothing to flush, or without the mechanism `batch`
    /// it has been flushed here. Then the rules of [`flush`](Coherence::flush) hold.
    pub fn change(
        &mut self,
        space: &Space,
        address: u64,
        size: u64,
        old: &Translation,
        new: &Translation,
    ) -> Option<Recorded> {
        match self.coherence.judge(space, 0, 1, (old, new)) {
            Decision::Skip(_) => None,
            Decision::Flush(_) if !self.coherence.switches().batch => {
                self.coherence.flush(space, Flush::page(address, size), self.cause);
                None
            }
            Decision::Flush(why) => {
                self.is_written |= old.dirty;
                let can_wait = why == Why::Removed && self.can_wait(old);
                Some(self.record(space, Flush::page(address, size), can_wait))
            }
        }
    }

    /// To be called, under the lock of the entry's table, by an agent that concludes something from an entry as it finds it: that a
    /// page is mapped nowhere any more, or clean. If operations are at work in the space that have not flushed yet, or another batch
    /// is, it takes part in their debt, and flushes it with its own. What [deferred](Batch::deferring) batches have taken out is the debt of those alone
    /// who [conclude its absence](Batch::concluding_absence): to all others it is what it was before, clean, and referred to by those batches.
    pub fn meet(&mut self, space: &Space) -> Option<Recorded> {
        let coherence = self.coherence;
        let meets_deferred = self.concludes_absence && space.deferred.is_outstanding();
        let is_alone = space.gathers.are_at_most(0)
            && !space.batched.is_outstanding()
            && (!meets_deferred || coherence.has_fault(Fault::DeferredNotMet));
        if is_alone || coherence.has_fault(Fault::BatchMeetsNobody) {
            return None;
        }
        coherence.counters().count(Row::Event(Event::BatchMet));
        self.is_written = true;
        if coherence.switches().batch {
            return Some(self.record(space, Flush::all(), false));
        }
        coherence.flush(space, Flush::all(), self.cause);
        None
    }

    /// Owes a flush of the space to whoever is active in it now. Its devices have no generations, so that they cannot catch up
    /// later: they are told of `flush` at once.
    fn record(&mut self, space: &Space, flush: Flush, can_wait: bool) -> Recorded {
        let coherence = self.coherence;
        coherence.counters().count(Row::Event(Event::BatchRecorded));
        let early =
            coherence.has_fault(Fault::BatchTargetsReadFirst).then(|| space.active.load(Ordering::Acquire));
        let generation = if coherence.has_fault(Fault::BatchWithoutGeneration) {
            space.generation()
        } else {
            space.generation.advance()
        };
        // Full fence, between advancing the generation and reading `active`. It pairs with the fence in `Coherence::join`
        // (switch.rs), between joining `active` and reading the generation. Without either, both could read the old: this CPU an
        // `active` without the other, and the other a generation without this record. Then no round would reach it.
        if !coherence.has_fault(Fault::NoFenceBatch) {
            fence(Ordering::SeqCst);
        }
        let active = early.unwrap_or_else(|| space.active.load(Ordering::Acquire));
        self.concerned = self.concerned.union(&active);
        self.is_outstanding = true;
        self.is_urgent |= !can_wait;
        let debt = if can_wait { &space.deferred } else { &space.batched };
        debt.record(generation);
        coherence.tell_devices(coherence.platform.current_cpu(), space, flush);
        Recorded(generation)
    }

    /// The caller's list, to add what is to be freed.
    pub fn list_mut(&mut self) -> &mut L {
        self.list.as_mut().expect("the list is there until the batch is finished")
    }

    /// Whether something is recorded and not flushed.
    pub fn is_outstanding(&self) -> bool {
        self.is_outstanding
    }

    /// Flushes if stores may still land through a recorded entry that was dirty: before the contents of these pages are read, to
    /// be written out or copied. The rules of [`flush`](Coherence::flush) hold.
    pub fn flush_written(&mut self) {
        if self.is_written && !self.coherence.has_fault(Fault::WrittenBatchNotFlushed) {
            self.flush_all();
        }
    }

    /// Flushes what is recorded and gives out what was collected so far. The batch goes on. The rules of
    /// [`flush`](Coherence::flush) hold.
    pub fn flush(&mut self) -> Flushed<L>
    where
        L: Default,
    {
        self.flush_all();
        Flushed(self.list.replace(L::default()).expect("the list is there until the batch is finished"))
    }

    /// Flushes what is recorded and gives out what was collected. The rules of [`flush`](Coherence::flush) hold.
    pub fn finish(mut self) -> Flushed<L> {
        Flushed(self.list.take().expect("the list is there until the batch is finished"))
        // Dropping `self` flushes.
    }

    /// Whoever was active where something was recorded catches up.
    fn flush_all(&mut self) {
        if !self.is_outstanding {
            return;
        }
        self.coherence.have_caught_up(self.concerned, self.cause);
        self.concerned = CpuSet::EMPTY;
        (self.is_outstanding, self.is_urgent, self.is_written) = (false, false, false);
    }
}

impl<P: Platform> Coherence<P> {
    /// One round: these CPUs, of which this one may be one, catch up with what they have loaded.
    pub(crate) fn have_caught_up(&self, mut targets: CpuSet, cause: Cause) {
        debug_assert!(self.platform.interrupts_enabled(), "a batch was flushed with interrupts off");
        let me = self.platform.current_cpu();
        if self.is_suppressed(cause) {
            return self.count(me, Row::Event(Event::Suppressed));
        }
        self.count(me, Row::Requested(cause));
        let is_concerned = targets.remove(me);
        let reach = self.spare_kernel(me, Reach::by_interrupts(targets));
        let ticket = self.ask(me, &Errand::CatchUp, &reach, cause);
        if is_concerned {
            self.platform.without_interrupts(|| self.drop_loaded(me));
        }
        self.wait(me, &reach.interrupted, ticket);
    }

    /// A flush of everything is over, whose request has this generation: what batches recorded before need no flush any more.
    #[inline]
    pub(crate) fn settle_batches(&self, space: &Space, flushed: Generation) {
        #[cfg(any(loom, shuttle, simulated))]
        if self.has_fault(Fault::BatchClearedByRacingFlush) {
            return space.batched.clear();
        }
        space.batched.settle(flushed);
        space.deferred.settle(flushed);
    }

    /// Drops what this CPU has cached, if it uses a space. Which one that is, and so how far it has caught up, is not known here:
    /// nothing is claimed. If it only borrows one, it compares before it uses it. Interrupts are off.
    fn drop_loaded(&self, me: crate::CpuId) {
        let private = &self.cpu(me).private.0;
        if private.loaded().is_some() && !private.is_lazy() {
            self.platform.invalidate_all();
            self.count(me, Row::Executed(Executed::LocalFull));
        }
    }
}

impl<L> Flushed<L> {
    /// Says that what this batch recorded in a space has been flushed, so that nobody else flushes for it. May be left out; then the
    /// next operation that would meet it flushes once more than it need. `recorded` must be of the batch that gave this out.
    pub fn settles(&self, space: &Space, recorded: Recorded) {
        space.batched.settle(recorded.0);
        space.deferred.settle(recorded.0);
    }
}

impl<P: Platform, L> Drop for Batch<'_, P, L> {
    fn drop(&mut self) {
        if !is_unwinding() {
            self.flush_all();
        }
    }
}

/// What batches have recorded in a space and nobody is known to have flushed: the greatest generation of a record, or 0.
#[derive(Debug)]
pub(crate) struct Batched(pub(crate) AtomicU64);

impl Batched {
    constructor! {
        pub(crate) fn new() -> Self {
            Batched(AtomicU64::new(0))
        }
    }

    /// Acquire: if it is 0 again, the flush that made it so is over.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Relaxed: whoever comes under the table's lock finds it by that lock, and a flush whose generation is as great or greater has the
    /// changed entries by the generation.
    ///
    /// The greatest counts. Were a younger record replaced by an older one that comes late, a flush between the two would take back
    /// both, and has reached only the older.
    fn record(&self, generation: Generation) {
        self.0.fetch_max(generation.number(), Ordering::Relaxed);
    }

    /// A flush of everything is over whose request has this generation, or has reached all that was recorded with it.
    ///
    /// Only what was recorded up to then is taken back. Release: who finds 0 (acquire) relies on that flush.
    #[inline]
    pub(crate) fn settle(&self, flushed: Generation) {
        let recorded = self.0.load(Ordering::Relaxed);
        if recorded != 0 && recorded <= flushed.number() {
            // If it fails, somebody has recorded more, or has settled it as well.
            let _ = self.0.compare_exchange(recorded, 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Takes back whatever is there: wrong, and kept so that the models show that they can tell.
    #[cfg(any(loom, shuttle, simulated))]
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }
}
