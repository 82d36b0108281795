//! Unhook, invalidate, free: frames come out of a gather only against a [`Flushed`] token.
//!
//! An operation that takes entries out of the tables collects the changes, and the frames and table pages it unhooked, in a
//! [`Gather`]. One flush at the end covers all changes; only then does the caller get its list back, inside [`Flushed`], to give
//! the frames to new owners. A caller that gathers too much can [`flush`](Gather::flush) in between.
//!
//! **The nested rule.** Two operations on one space may meet: A has cleared an entry under a table lock, and has not flushed
//! yet. B takes the lock, finds nothing to clear, and would return to its program, which believes the page gone while CPUs
//! still hold it. So a gather is announced in the space *before* it takes its first table lock, and withdrawn after its flush:
//!
//! ```text
//!   A: announce; lock; clear; unlock;                ...   flush; withdraw (release)
//!   B: announce;               lock; find it empty; unlock; is anyone else announced? (acquire)
//! ```
//!
//! If B met A's cleared entry, then the table lock orders A's announcement before B's question. If B's answer is still
//! "nobody", A has withdrawn, and its flush is over. Otherwise B flushes all that it is about to tell its program of: the
//! addresses that it named with [`about`](Gather::about), or else everything.
//!
//! That is for the sake of B's own promise, so CPUs that borrow the space need not hear of it (they compare generations before
//! they run that program again). If A unhooked tables too, A tells them before it frees those.
//!
//! **Under one lock.** An operation that flushes before it drops the table lock, under which it made all its changes, cannot be
//! met half done; and a page fault tells its program nothing. Such an operation need neither announce itself nor ask:
//! [`gather_under_lock`](Coherence::gather_under_lock).
//!
//! **What counts as unused** ([`policy`](crate::policy)) does so from the moment at which the entry says it, which is before its flush. So
//! all, those under one lock and batches too, believe it only where nobody else is announced and no batch is outstanding: the same lock, and
//! the same question, asked before anything is freed and not only at the end.

use crate::fault::Fault;
use crate::policy::{self, Decision, Translation};
use crate::sync::is_unwinding;
use crate::{Cause, Coherence, Event, Flush, Platform, Reason, Row, SharerSet, Space, Why};

/// The changes of one operation on a space, and a caller's list `L` of what may be freed after they are flushed.
///
/// Made by [`Coherence::gather`]. Dropping it flushes first and drops the list then.
#[must_use = "a gather that is dropped flushes at once; keep it until the operation is over"]
pub struct Gather<'a, P: Platform, L> {
    pub(crate) coherence: &'a Coherence<P>,
    pub(crate) space: &'a Space,
    cause: Cause,
    /// What has to be flushed for the changes so far.
    outstanding: Option<Flush>,
    /// Whether anything has been flushed since the beginning.
    flushed_before: bool,
    /// Whether all that has to be flushed is so only because the mechanism `clean` is off.
    only_clean: bool,
    meeting: Meeting,
    /// Whom what is outstanding concerns (`sharers.rs`), but for what has been added since a table was last named.
    concerned: SharerSet,
    /// Something has been added since a table was last named: that concerns everyone.
    is_loose: bool,
    /// `None` only after `finish` took it.
    list: Option<L>,
}

/// What is flushed at the end because another operation may have been met.
#[derive(Clone, Copy, Debug)]
enum Meeting {
    /// This, if another one is announced.
    Flushes(Flush),
    /// Nothing: all happens under one lock.
    CannotBe,
}

impl<P: Platform> Coherence<P> {
    /// Begins an operation that changes entries of the space.
    ///
    /// Begin it *before* taking the first table lock, and finish it before anyone is told that the operation is done. The
    /// rules of [`flush`](Coherence::flush) hold for the gather's methods.
    pub fn gather<'a, L>(&'a self, space: &'a Space, cause: Cause, list: L) -> Gather<'a, P, L> {
        space.gathers.begin();
        self.begin(space, cause, list, Meeting::Flushes(Flush::all()))
    }

    /// Begins an operation all of whose changes are made *and flushed* under one table lock, and after which nobody is told
    /// that something is gone: the handling of a page fault.
    ///
    /// Begin and finish it under the lock. It has no part in the nested rule. As it waits for other CPUs under the lock, whoever
    /// waits for that lock takes interrupts meanwhile, or [answers](Coherence::answer_requests).
    pub fn gather_under_lock<'a, L>(&'a self, space: &'a Space, cause: Cause, list: L) -> Gather<'a, P, L> {
        self.begin(space, cause, list, Meeting::CannotBe)
    }

    fn begin<'a, L>(&'a self, space: &'a Space, cause: Cause, list: L, meeting: Meeting) -> Gather<'a, P, L> {
        #[cfg(simulated)]
        self.tell_devices_first(space);
        let (outstanding, flushed_before, only_clean) = (None, false, true);
        let list = Some(list);
        let (concerned, is_loose) = (SharerSet::NOBODY, false);
        Gather {
            coherence: self,
            space,
            cause,
            outstanding,
            flushed_before,
            only_clean,
            meeting,
            concerned,
            is_loose,
            list,
        }
    }
}

impl<P: Platform, L> Gather<'_, P, L> {
    /// Names the addresses that the operation tells its program of, with the smallest size of their pages: when it has met
    /// another operation, it flushes these and not everything.
    pub fn about(mut self, addresses: Flush) -> Self {
        if let Meeting::Flushes(all) = &mut self.meeting {
            *all = addresses;
        }
        self
    }

    /// Takes note that the entry for the `size` bytes at `address` has been changed from `old` to `new`.
    ///
    /// The size is a power of two, and the address may be any within it. An entry that was only looked at need not be named.
    /// `old` is what an atomic exchange returned. Returns what was decided; the gather acts on it by itself. Without the
    /// mechanism `gather`, a change that needs a flush is flushed here.
    pub fn change(&mut self, address: u64, size: u64, old: &Translation, new: &Translation) -> Decision {
        self.change_alike(Flush::page(address, size), 1, old, new)
    }

    /// As [`change`](Gather::change), for `count` entries of pages in `addresses`, all of which were as `old` and are as `new` now, as
    /// far as the decision depends on it.
    pub fn change_alike(
        &mut self,
        addresses: Flush,
        count: u64,
        old: &Translation,
        new: &Translation,
    ) -> Decision {
        // Announced gathers are counted with this one, if it is.
        let own = u64::from(matches!(self.meeting, Meeting::Flushes(_)));
        let decision = self.coherence.judge(self.space, own, count, (old, new));
        match decision {
            Decision::Skip(_) => {}
            Decision::Flush(Why::CleanWriteRemoved) => self.merge(addresses),
            Decision::Flush(_) => self.add(addresses),
        }
        decision
    }

    /// Takes note that a table which mapped the `size` bytes at `address` has been unhooked, and is to be freed.
    pub fn table_freed(&mut self, address: u64, size: u64) {
        self.add(Flush::page(address, size).freeing_tables());
    }

    /// Takes note of something to be flushed that was decided elsewhere.
    pub fn add(&mut self, flush: Flush) {
        self.only_clean = false;
        self.merge(flush);
    }

    /// What was changed or added since a table was last named concerns every CPU.
    pub fn concerns_everyone(&mut self) {
        self.concern(SharerSet::EVERYONE);
    }

    /// What is loose concerns these.
    pub(crate) fn concern(&mut self, sharers: SharerSet) {
        if core::mem::take(&mut self.is_loose) {
            self.concerned = self.concerned.union(sharers);
        }
    }

    fn merge(&mut self, flush: Flush) {
        self.is_loose = true;
        if !self.coherence.switches().gather {
            self.carry_out(flush);
            return;
        }
        #[cfg(simulated)]
        if let (Some(outstanding), true) = (self.outstanding, self.coherence.has_fault(Fault::LargestStride))
        {
            self.outstanding = Some(outstanding.merge_with_largest_stride(&flush));
            return;
        }
        self.outstanding = Some(match self.outstanding {
            Some(outstanding) => outstanding.merge(&flush),
            None => flush,
        });
    }

    /// The caller's list, to add what it unhooked.
    pub fn list_mut(&mut self) -> &mut L {
        self.list.as_mut().expect("the list is there until the gather is finished")
    }

    /// What has to be flushed for the changes so far, if anything.
    pub fn outstanding(&self) -> Option<Flush> {
        self.outstanding
    }

    /// Flushes the changes so far and gives out what was unhooked with them. The gather goes on. The rules of
    /// [`finish`](Gather::finish) hold.
    pub fn flush(&mut self) -> Flushed<L>
    where
        L: Default,
    {
        if let Some(flush) = self.outstanding.take() {
            self.carry_out(flush);
        }
        Flushed(self.list.replace(L::default()).expect("the list is there until the gather is finished"))
    }

    /// Flushes what is outstanding and gives out what was unhooked.
    ///
    /// It waits for other CPUs: interrupts are on, the thread stays on this CPU, and no lock is held for which others wait with
    /// interrupts off without answering.
    ///
    /// # Panics
    /// With debug assertions, if there is something to flush and interrupts are off.
    pub fn finish(mut self) -> Flushed<L> {
        self.conclude();
        Flushed(self.list.take().expect("the list is there until the gather is finished"))
        // Dropping `self` withdraws the gather.
    }

    fn carry_out(&mut self, flush: Flush) {
        if core::mem::replace(&mut self.only_clean, true) {
            self.coherence.counters().count(Row::Event(Event::CleanFlush));
        }
        let concerned = core::mem::replace(&mut self.concerned, SharerSet::NOBODY);
        let is_loose = core::mem::take(&mut self.is_loose);
        let sharers = if is_loose { SharerSet::EVERYONE } else { concerned };
        self.coherence.flush_among(self.space, flush, self.cause, sharers);
        self.flushed_before = true;
    }

    fn conclude(&mut self) {
        let counters = self.coherence.counters();
        counters.count(Row::Event(Event::Gather));
        if let Meeting::Flushes(addresses) = self.meeting
            && !self.space.gathers.are_at_most(1)
            && !self.coherence.has_fault(Fault::NoNestedRule)
        {
            counters.count(Row::Event(Event::NestedGather));
            self.only_clean = false;
            let own = self.outstanding.filter(|_| !self.coherence.has_fault(Fault::NestedForgetsItsOwn));
            self.outstanding = Some(own.map_or(addresses, |flush| flush.merge(&addresses)));
            self.concerned = SharerSet::EVERYONE;
        }
        if let (Meeting::Flushes(_), true) =
            (self.meeting, self.coherence.has_fault(Fault::WithdrawnBeforeFlush))
        {
            self.space.gathers.end();
        }
        match self.outstanding {
            Some(flush) => self.carry_out(flush),
            None if self.flushed_before => {}
            None => counters.count(Row::Skipped(Reason::NothingToFlush)),
        }
    }
}

impl<P: Platform, L> Drop for Gather<'_, P, L> {
    fn drop(&mut self) {
        if is_unwinding() {
            return;
        }
        if self.list.is_some() {
            self.conclude();
        }
        if let (Meeting::Flushes(_), false) =
            (self.meeting, self.coherence.has_fault(Fault::WithdrawnBeforeFlush))
        {
            self.space.gathers.end();
        }
    }
}

impl<P: Platform> Coherence<P> {
    /// Decides as [`policy::decide`] does of `count` entries that changed alike, and counts the decision in the ledger. `own`: how many of
    /// the gathers that are announced in the space are the caller's.
    #[inline]
    pub(crate) fn judge(
        &self,
        space: &Space,
        own: u64,
        count: u64,
        (old, new): (&Translation, &Translation),
    ) -> Decision {
        let switches = self.switches();
        let decision = match policy::decide(&self.as_judged(space, own, old), new, &switches) {
            // Not every device marks an entry dirty before it stores.
            Decision::Skip(Reason::CleanWriteRemoved) if self.platform.has_devices() => {
                Decision::Flush(Why::CleanWriteRemoved)
            }
            decision => decision,
        };
        let row = match decision {
            Decision::Flush(why) => Row::Needed(why),
            Decision::Skip(reason) => Row::Skipped(reason),
        };
        self.counters().add(row, count);
        decision
    }

    #[inline]
    fn as_judged(&self, space: &Space, own: u64, old: &Translation) -> Translation {
        let is_mistaken = self.has_fault(Fault::DirtyTakenForClean);
        let unused = old.unused && self.is_known_unused(space, own);
        Translation { dirty: old.dirty && !is_mistaken, unused, ..*old }
    }

    /// Whether what counts as unused in the space is so by now. Asked under the lock of the entry's table.
    fn is_known_unused(&self, space: &Space, own: u64) -> bool {
        // Not every device marks what it uses.
        let by_devices = self.platform.has_devices() && !self.has_fault(Fault::UnusedByCpusAlone);
        // Whoever has made it so may not have flushed yet.
        let is_settled = space.gathers.are_at_most(own) && !space.batched.is_outstanding();
        !by_devices && (is_settled || self.has_fault(Fault::UnusedBeforeItsFlush))
    }
}

/// Proof that what it holds was unhooked, and that no CPU can reach it through the old entries any more.
#[derive(Debug)]
#[must_use = "what was unhooked is still waiting to be freed"]
pub struct Flushed<L>(pub(crate) L);

impl<L> Flushed<L> {
    /// As [`into_inner`](Self::into_inner), to look at it before.
    pub fn get(&self) -> &L {
        &self.0
    }

    /// What may be freed now.
    pub fn into_inner(self) -> L {
        self.0
    }
}
