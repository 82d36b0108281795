//! Batches whose flush waits until somebody needs what they hold.
//!
//! A translation that was clean and could not be stored through does no harm for as long as its frame is what it was: the page that
//! it showed. So its batch need not flush when it ends. It becomes a [`Deferred`], which keeps its list closed until every CPU that
//! it concerns has flushed, for whatever reason, or has been told to.
//!
//! **How is it known that a CPU has flushed by itself?** The machine has a number that only grows, the *epoch*. A deferred batch starts a new one
//! after its last record; and a CPU that compares the generations of what it uses, or drops everything, says afterwards which epoch it had
//! read before:
//!
//! ```text
//!  agent                                        CPU
//!  change the entries
//!  advance the spaces' generations
//!  advance the epoch (release): E               read the epoch (acquire): e
//!  …                                            read the generation; flush if it is behind
//!  has the CPU reached E? (acquire) <---------- it has reached e (release)
//! ```
//!
//! If e is E or later, the CPU found the batch's generations, so it has flushed for them, and that comes before whatever the agent does next. No
//! fence is needed: nobody relies on what he has *not* seen. A CPU says so when it enters a space, comes back to one, lets go of one, has missed something in the
//! kernel, and when a request makes it drop everything. CPUs that have not come so far are told when the list is needed, by a batch's round:
//! [`Coherence::retire`]. Which need not be, [`Coherence::redeem`] gives out at once.
//!
//! **What may wait** is decided where it is recorded ([`Batch::change`]): an entry that was taken out, was clean, and could not be stored
//! through. (With the mechanism `clean` one that could will do, where the processor can be trusted to look again.) Anything else makes the batch
//! one that is flushed at its end.
//!
//! **What a caller owes**, beside not opening the list: as long as the batch waits, a page at one of these addresses is the one that was
//! there, in the same frame, or else the flush comes first. Whoever maps another one there asks [`Coherence::settle`], as for any batch; whoever maps the
//! same one may ask [`Coherence::settle_for_the_same_page`].
//!
//! **Who promises something** (munmap, mprotect, truncation) settles as for any batch. The debt is a word of its own in the space, so that those who
//! need not ask can tell one kind from the other.

use crate::fault::Fault;
use crate::policy::Translation;
use crate::sync::{AtomicU64, Line, Ordering, constructor};
use crate::{
    Batch, Cause, Coherence, CpuId, CpuSet, Event, Flushed, Generation, Platform, Reason, Row, Space,
};

/// How many deferred batches there have been. A generation of the machine as a whole.
pub(crate) type Epoch = Generation;

/// A batch that has ended without a flush: a caller's list `L`, which nobody gets before all CPUs have flushed.
///
/// It belongs to no CPU and holds nothing, so it may be kept. If it is dropped, the list is too, with whatever that does: so a list
/// that frees something when it is dropped is none for this.
#[derive(Debug)]
#[must_use = "what it holds is lost if it is dropped; redeem or retire it"]
pub struct Deferred<L> {
    /// Who was active in a space when something was recorded there.
    concerned: CpuSet,
    epoch: Epoch,
    list: L,
}

impl<L> Deferred<L> {
    /// The same, with another list.
    pub fn map<M>(self, change: impl FnOnce(L) -> M) -> Deferred<M> {
        Deferred { concerned: self.concerned, epoch: self.epoch, list: change(self.list) }
    }

    /// Two as one.
    pub fn merge(self, other: Self, join: impl FnOnce(L, L) -> L) -> Self {
        Deferred {
            concerned: self.concerned.union(&other.concerned),
            epoch: self.epoch.max(other.epoch),
            list: join(self.list, other.list),
        }
    }
}

/// Up to which epoch a CPU has flushed, where other CPUs can read it.
#[derive(Debug)]
pub(crate) struct Reached(Line<AtomicU64>);

impl Reached {
    constructor! {
        pub(crate) fn new() -> Self {
            Reached(Line(AtomicU64::new(0)))
        }
    }
}

impl<P: Platform, L> Batch<'_, P, L> {
    /// The same batch, which may be [deferred](Batch::defer) if all that it records can wait. To be called before anything is recorded.
    pub fn deferring(mut self) -> Self {
        let switches = self.coherence.switches();
        self.is_deferring = switches.batch && switches.epochs;
        self
    }

    /// Whether an entry that is taken out may go on being used until somebody needs the frame.
    pub(crate) fn can_wait(&self, old: &Translation) -> bool {
        let coherence = self.coherence;
        // Whoever has cached an entry that is not dirty looks at it again before the first store.
        let looks_again = coherence.switches().clean && !coherence.platform.has_devices();
        self.is_deferring && !old.dirty && (!old.writable || looks_again)
    }

    /// Ends the batch without a flush, if all that it has recorded can wait. Otherwise as [`finish`](Batch::finish), whose rules hold.
    ///
    /// # Errors
    /// With what was collected, and can be had at once.
    pub fn defer(mut self) -> Result<Deferred<L>, Flushed<L>> {
        if !self.is_deferring || self.is_urgent {
            return Err(self.finish());
        }
        let epochs = &self.coherence.epochs;
        // Release, in `advance`: whoever reads the new epoch, with acquire, finds the generations that this batch has advanced.
        let is_stale = self.coherence.has_fault(Fault::EpochNotAdvanced);
        let epoch = if is_stale { epochs.load() } else { epochs.advance() };
        self.coherence.counters().count(Row::Event(Event::EpochDeferred));
        self.is_outstanding = false;
        let list = self.list.take().expect("the list is there until the batch is finished");
        Ok(Deferred { concerned: self.concerned, epoch, list })
    }
}

impl<P: Platform> Coherence<P> {
    /// Gives out what a deferred batch holds, if all CPUs that it concerns have flushed since, for whatever reason.
    ///
    /// # Errors
    /// With the batch, if one has not.
    pub fn redeem<L>(&self, deferred: Deferred<L>) -> Result<Flushed<L>, Deferred<L>> {
        if !self.lagging(&deferred).is_empty() {
            return Err(deferred);
        }
        self.counters().count(Row::Event(Event::EpochFree));
        self.counters().add(Row::Skipped(Reason::EpochReached), deferred.concerned.len() as u64);
        Ok(Flushed(deferred.list))
    }

    /// Gives out what a deferred batch holds, after one round for those CPUs that have not flushed since. The rules of [`flush`](Coherence::flush) hold.
    pub fn retire<L>(&self, deferred: Deferred<L>, cause: Cause) -> Flushed<L> {
        let deferred = match self.redeem(deferred) {
            Ok(flushed) => return flushed,
            Err(deferred) => deferred,
        };
        let lagging = self.lagging(&deferred);
        let ahead = deferred.concerned.difference(&lagging);
        self.counters().count(Row::Event(Event::EpochFlush));
        self.counters().add(Row::Skipped(Reason::EpochReached), ahead.len() as u64);
        if !self.has_fault(Fault::DeferredNotFlushed) {
            self.have_caught_up(lagging, cause);
        }
        Flushed(deferred.list)
    }

    /// Of the CPUs that a deferred batch concerns, those that are not known to have flushed since.
    ///
    /// Acquire: what a CPU did through old entries, before it came so far, comes before what the caller does.
    fn lagging<L>(&self, deferred: &Deferred<L>) -> CpuSet {
        let has_reached = |cpu: &CpuId| {
            Generation::new(self.cpu(*cpu).reached.0.0.load(Ordering::Acquire)) >= deferred.epoch
        };
        deferred.concerned.iter().filter(|cpu| !has_reached(cpu)).collect()
    }

    /// The epoch: to be read before the generation that is compared.
    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        self.epochs.load()
    }

    /// This CPU has nothing cached that it may use and that was recorded before an epoch which it read earlier. Interrupts are off.
    ///
    /// Release: who reads it finds what the CPU did before, through old entries, and its flush, done.
    #[inline]
    pub(crate) fn reach_epoch(&self, me: CpuId, epoch: Epoch) {
        let epoch = if self.has_fault(Fault::EpochReadLate) { self.epochs.load() } else { epoch };
        self.cpu(me).reached.0.0.store(epoch.number(), Ordering::Release);
    }

    /// As [`settle`](Coherence::settle), for who maps the page that was at this address before, in the same frame, and has this from the page's owner:
    /// what deferred batches have left there shows nothing else.
    #[inline]
    pub fn settle_for_the_same_page(&self, space: &Space, cause: Cause) -> bool {
        let is_needed = self.owes_for_urgent_batches(space);
        if is_needed {
            self.settle_now(space, cause);
        }
        is_needed
    }
}
