//! The changes that one operation makes to page tables, and the frames that it takes out with them.
//!
//! A thin layer over `coherence`'s gather that knows our entries and our list of frames. One operation makes one of
//! these, before its first table lock, and so causes at most one round of interrupts. The frames go back to the
//! allocator only in [`Changes::finish`], out of a `Flushed`: there is no other way to get at them.

use coherence::{Cause, Flush, Gather, Sharers, Space, Translation};

use crate::entry::{Entry, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::frame::FrameNumber;
use crate::frame_list::FrameList;
use crate::large_entry::reveal;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::own_tables::OwnTables;
use crate::page_table::span;
use crate::range::PAGE_SIZE;
use crate::sync::AtomicU64;

/// The changes of one operation.
pub(crate) struct Changes<'a, E: Environment> {
    environment: &'a E,
    own_tables: &'a OwnTables<E>,
    /// `None` only after `finish` took it.
    gather: Option<Gather<'a, E::Platform, FrameList>>,
    /// A table lock is held to the end: nobody may be let run meanwhile, since the lock spins.
    under_lock: bool,
    has_settled: bool,
    /// Where tables are hidden that hardware may find after the flush (`split`): at the two ends of the operation's range at most.
    hidden: [Option<&'a AtomicU64>; 2],
}

impl<'a, E: Environment> Changes<'a, E> {
    /// Begins an operation on the space. To be called before the operation's first table lock, so that whoever finds
    /// an entry that this operation emptied knows of it (the nested rule of `coherence::gather`).
    pub(crate) fn new(
        environment: &'a E,
        (space, own_tables): (&'a Space, &'a OwnTables<E>),
        cause: Cause,
    ) -> Self {
        let gather = environment.coherence().gather(space, cause, FrameList::default());
        Self {
            environment,
            own_tables,
            gather: Some(gather),
            under_lock: false,
            has_settled: false,
            hidden: [None; 2],
        }
    }

    /// Begins an operation all of whose changes are made and flushed under one table lock, which is held already and until it is
    /// finished: nobody can meet it half done. Nor can it meet another one that is: those work under the lock of the same
    /// table, or under the exclusive area lock.
    pub(crate) fn under_lock(
        environment: &'a E,
        (space, own_tables): (&'a Space, &'a OwnTables<E>),
        cause: Cause,
    ) -> Self {
        let gather = environment.coherence().gather_under_lock(space, cause, FrameList::default());
        Self {
            environment,
            own_tables,
            gather: Some(gather),
            under_lock: true,
            has_settled: false,
            hidden: [None; 2],
        }
    }

    /// To be called under the lock of each table whose entries are looked at, each time it is taken: a batch may have changed some,
    /// and not flushed yet (`page_batch`).
    #[inline]
    pub(crate) fn settle(&mut self) {
        if core::mem::replace(&mut self.has_settled, true) && is_made(Mistake::SettledOnlyOnce) {
            return;
        }
        if let Some(gather) = &mut self.gather {
            gather.settle();
        }
    }

    /// What has been noted since the last call of this is in a table with these sharers.
    #[inline]
    fn within(&mut self, sharers: &Sharers) {
        if let (true, Some(gather)) = (self.own_tables.are_there(), &mut self.gather) {
            gather.within(&[sharers, self.own_tables.finders()]);
        }
    }

    /// Takes note that the page at `address` had `old` (as an atomic exchange returned it) and now has `new`.
    /// `coherence::policy` decides whether that needs a flush.
    pub(crate) fn changed(&mut self, leaf: &Leaf<'_, E>, address: u64, old: Entry, new: Entry) {
        if let Some(gather) = &mut self.gather {
            gather.change(address, PAGE_SIZE, &old.into(), &new.into());
        }
        self.within(leaf.sharers());
    }

    /// As [`Changes::changed`], of a large page: one range of one large stride. CPUs may hold it whole or in pieces, and an invalidation
    /// at any address in it drops them all.
    pub(crate) fn changed_large(&mut self, address: u64, old: Entry, new: Entry) {
        if let (Some(gather), false) = (&mut self.gather, is_made(Mistake::LargePageNotFlushed)) {
            gather.change(address, LARGE_PAGE_SIZE, &old.into(), &new.into());
        }
        // No CPU links a large page.
        self.within(&Sharers::new());
    }

    /// Keeps the table hidden to which that entry of that table leads, until after the flush.
    pub(crate) fn reveal_later(&mut self, table: FrameNumber, index: usize) {
        let upper = &self.environment.frames().words(table)[index];
        if is_made(Mistake::PiecesMappedBeforeFlush) {
            return reveal(upper);
        }
        let free = self.hidden.iter_mut().find(|place| place.is_none());
        debug_assert!(free.is_some(), "an operation cuts at two ends");
        if let Some(free) = free {
            *free = Some(upper);
        }
    }

    /// Takes note that `present` entries of pages from `first` to `last`, which were present, and `absent` others are empty now.
    pub(crate) fn emptied(
        &mut self,
        leaf: &Leaf<'_, E>,
        (first, last): (u64, u64),
        (present, absent): (u16, u16),
    ) {
        let Some(gather) = &mut self.gather else { return };
        let gone = Translation::default();
        let pages = Flush::range(first, last + 1, PAGE_SIZE);
        if absent > 0 {
            gather.change_alike(pages, absent.into(), &gone, &gone);
        }
        if present > 0 {
            gather.change_alike(pages, present.into(), &Translation { present: true, ..gone }, &gone);
        }
        self.within(leaf.sharers());
    }

    /// Takes over the reference that an entry held, to be dropped after the flush.
    pub(crate) fn release_later(&mut self, frame: FrameNumber) {
        if frame == self.environment.frames().zero_frame() {
            return;
        }
        let Some(gather) = &mut self.gather else { return };
        if is_made(Mistake::FramesFreedBeforeFlush) {
            return self.environment.frames().release(self.environment.current_cpu(), frame);
        }
        if gather.list_mut().push(self.environment, frame).is_err() {
            // No memory for a longer list: this operation takes one more round. The entry of `frame` was emptied
            // and noted before, so this flush covers it; releasing it with a later one does no harm.
            gather.flush().into_inner().release(self.environment);
            let pushed = gather.list_mut().push(self.environment, frame);
            debug_assert!(pushed.is_ok(), "an empty list has room in place");
        }
    }

    /// As [`Changes::release_later`], of the run of frames that a large page's entry held.
    pub(crate) fn release_run_later(&mut self, first: FrameNumber) {
        let Some(gather) = &mut self.gather else { return };
        if is_made(Mistake::FramesFreedBeforeFlush) {
            return self.environment.frames().release_run(self.environment.current_cpu(), first);
        }
        if gather.list_mut().push_run(self.environment, first).is_err() {
            gather.flush().into_inner().release(self.environment);
            let pushed = gather.list_mut().push_run(self.environment, first);
            debug_assert!(pushed.is_ok(), "an empty list has room in place");
        }
    }

    /// Takes note that a table which mapped `span` bytes at `address` was unhooked with all its entries, none of which was emptied.
    pub(crate) fn table_unhooked(&mut self, address: u64, span: u64, table: FrameNumber) {
        let stride = if is_made(Mistake::CollapseFlushedAsOnePage) { span } else { PAGE_SIZE };
        let flush = Flush::range(address, address + span, stride);
        if let Some(gather) = &mut self.gather {
            gather.add(if is_made(Mistake::TablesNotCalledFreed) { flush } else { flush.freeing_tables() });
        }
        self.within(self.environment.frames().sharers(table));
    }

    /// Flushes the changes so far; what waits for it is given back with the rest.
    pub(crate) fn flush(&mut self) {
        if let Some(gather) = &mut self.gather {
            gather.flush().into_inner().release(self.environment);
        }
    }

    /// Takes note that a table which mapped `span` bytes at `address` was unhooked, and takes it over.
    pub(crate) fn table_taken(&mut self, address: u64, span: u64, table: FrameNumber) {
        if let Some(gather) = &mut self.gather {
            if is_made(Mistake::TablesNotCalledFreed) {
                gather.add(Flush::page(address, span));
            } else {
                gather.table_freed(address, span);
            }
        }
        // An upper table that is not a CPU's own is found by those only who find all.
        self.within(self.environment.frames().sharers(table));
        if is_made(Mistake::TablesFreedBeforeFlush) {
            return self.environment.frames().release(self.environment.current_cpu(), table);
        }
        self.release_later(table);
    }

    /// Takes note that a table which mapped `span` bytes at `address` maps them elsewhere now. Whatever its entries are:
    /// beside the translations of its pages, CPUs must drop the upper levels that they have cached on the way to it, through which
    /// they would go on to find pages in it at the old addresses. Page by page (which soon means everything), since dropping one
    /// page drops one translation only.
    ///
    /// CPUs that borrow the space need not hear of it. The table lives on, so that their walkers may go through it; what these
    /// find nobody uses before the generations are compared; and when the table is freed one day, they are told.
    pub(crate) fn table_moved(&mut self, address: u64, level: usize, table: FrameNumber) {
        let span = span(level);
        let Some(gather) = &mut self.gather else { return };
        if is_made(Mistake::MovedTableNotFlushed) {
            return;
        }
        let stride = if is_made(Mistake::MovedTableFlushedAsOnePage) { span } else { PAGE_SIZE };
        gather.add(Flush::range(address, address + span, stride));
        if level == 1 {
            self.within(self.environment.frames().sharers(table));
        } else {
            gather.concerns_everyone();
        }
    }

    /// Flushes what must be flushed, then gives the frames back. When this returns, no CPU can reach any of them
    /// through the old entries.
    pub(crate) fn finish(mut self) {
        self.conclude();
    }

    fn conclude(&mut self) {
        if let Some(gather) = self.gather.take() {
            let frames = gather.finish().into_inner();
            self.hidden.into_iter().flatten().for_each(reveal);
            if self.under_lock {
                frames.release(self.environment);
            } else {
                frames.release_yielding(self.environment);
            }
        }
    }
}

impl<E: Environment> Drop for Changes<'_, E> {
    fn drop(&mut self) {
        self.conclude();
    }
}
