//! Ways to break this crate on purpose, so that the checkers show that they would notice.
//!
//! A mistake is chosen in the checkers' build only (`--cfg simulated`). In every other one the question "is it made?" is the
//! constant `false`.

/// One way to get it wrong. Each is a mistake that a kernel has made or could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(simulated), allow(unreachable_pub, dead_code, reason = "asked about, but never chosen"))]
pub enum Mistake {
    /// Who looks at a page's entries takes them as they are, whatever others have still to flush, and the page's mark as it was.
    EntriesTakenAsTheyAre,
    /// A CPU links a leaf table into tables of its own before it joins the table's sharers.
    LinkedBeforeJoining,
    /// A CPU links a leaf table into tables of its own and does not join the table's sharers.
    LinkedWithoutJoining,
    /// A leaf table that is taken out stays linked in CPUs' own tables.
    LinksLeftBehind,
    /// A CPU that found all tables goes over to its own with what it has cached.
    FinderKeepsTranslations,
    /// A copied page's new frame is mapped before the flush of the old one.
    CopyMappedBeforeFlush,
    /// Frames go back to the allocator before the flush.
    FramesFreedBeforeFlush,
    /// Page tables go back to the allocator before the flush.
    TablesFreedBeforeFlush,
    /// Page tables are taken out and freed without keeping those off who walk them by the reverse way.
    TablesTakenBesideReverseWalks,
    /// That page tables are freed is not said to `coherence`.
    TablesNotCalledFreed,
    /// Dropping pages flushes after the table's lock is released.
    DropFlushedAfterUnlock,
    /// `fork` flushes after the area lock is released.
    ForkFlushedAfterUnlock,
    /// The first store to a page of zeroes flushes nothing.
    ZeroesNotFlushed,
    /// `mremap` lets others at the pages again before it flushes.
    MoveFlushedAfterUnlock,
    /// An operation looks for what batches have left pending at the first table that it locks, and at no other.
    SettledOnlyOnce,
    /// A page is copied although stores to it may still land.
    CopySourceNotSettled,
    /// Of a page that is to be merged, an entry without the right to write is taken as a sign that nobody can store to it.
    MergeTrustsEntries,
    /// `mremap` flushes anonymous pages only once, after it has let others at them again.
    MoveFlushedAtEnd,
    /// `mremap` flushes the addresses that pages go to.
    MoveFlushedWhereItWent,
    /// `mremap` does not keep those off who come to pages by the reverse way.
    MovedBesideReverseWalks,
    /// `mremap` takes the pointer to a table as it was before it kept others off.
    MovedTableReadTooEarly,
    /// `mremap` does not flush a table that it moved as a whole: none of its entries has changed.
    MovedTableNotFlushed,
    /// `mremap` flushes a table that it moved as one large page.
    MovedTableFlushedAsOnePage,
    /// Guarding pages against stores flushes after the table's lock is released.
    GuardFlushedAfterUnlock,
    /// A page that is no longer guarded becomes writable, whoever else it belongs to.
    UnguardedWithoutAskingWhoOwns,
    /// The guard of a page goes when the page is taken out, which can be had again.
    GuardGoesWithThePage,
    /// A fault that found no page, and no guard, puts the page in where there is a guard by now.
    AbsentGuardOverwritten,
    /// A page that is not there is guarded without asking whether CPUs have still to drop it.
    GuardTrustsEmptyEntries,
    /// A fault looks at an entry to see whether it is guarded, and once more to decide what to do.
    GuardLostInCopy,
    /// Pages that come to where nobody watches stay guarded.
    GuardKeptWhenMoved,
    /// A fault is told, and waits, without another look at whether it has been resolved.
    ToldWithoutLookingAgain,
    /// An area is taken from its monitor, and who waits there goes on waiting.
    UnwatchedWithoutWaking,
    /// A page is filled in where the area was a moment ago.
    FilledWithoutLookingAgain,
    /// `mremap` makes tables as it needs them, and gives up in the middle when there is no memory for one.
    MoveGivenUpInTheMiddle,
    /// The frames of a hole in an object go back to the allocator before the flush.
    HoleFreedBeforeFlush,
    /// Who wants a page where a hole is being punched gets one at once.
    HoleNotWaitedFor,
    /// A fault puts the page in that it got, although its object has lost it since.
    LostPageMapped,
    /// Small entries are put in the place of a large one before that is flushed.
    PiecesMappedBeforeFlush,
    /// A large page that falls to pieces at a store is not flushed at all: its frames stay where they were.
    SplitNotFlushed,
    /// Changes of a large page's entry are not flushed.
    LargePageNotFlushed,
    /// Small pages are copied into a large one before they are flushed.
    CollapseCopiedBeforeFlush,
    /// The small pages that a large one is made of are flushed as one large page.
    CollapseFlushedAsOnePage,
    /// An entry that is not marked as used is taken out as if no CPU had it: the mark was taken without a flush.
    UnusedTakenForUncached,
    /// A page whose flush waits leaves its object at once, so that the next who wants it gets another frame.
    WaitingPageForgotten,
    /// A private copy is mapped where CPUs may still use the object's page, whose flush waits.
    CopyBesideWaitingPage,
    /// Who writes pages out does not look again for marks that were on their way from an entry to the frame.
    LateMarksMissed,
    /// An entry's mark of being used is taken by writing it back as it was read.
    AgedByPlainStore,
    /// A page that goes to a slot is written there before it is flushed.
    SwapWrittenBeforeFlush,
    /// What takes out entries does not see that one has a page in a slot.
    SwapEntryTakenForEmpty,
    /// `fork` copies the entry of a slot and does not count it.
    SwapEntryNotCounted,
    /// A slot is given out to a page while another's is carried to or from it.
    SlotGivenOutWhileCarried,
    /// An entry's mark of being used is taken without a flush, and nothing is left that says so.
    AgedWithoutTrace,
    /// `fork` makes entries unused which it has no reason to flush, and does not flush them.
    SharedAsUnused,
    /// Dropping pages finds nothing where a large page is being split.
    SplitTakenForNothing,
}

#[cfg(simulated)]
mod chosen {
    extern crate std;
    use core::cell::Cell;

    use super::Mistake;

    std::thread_local! {
        static CHOSEN: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    /// Makes this mistake, or none, from here on on this thread.
    pub fn make_mistake(mistake: Option<Mistake>) {
        CHOSEN.set(mistake);
    }

    pub(crate) fn is_made(mistake: Mistake) -> bool {
        CHOSEN.get() == Some(mistake)
    }
}

#[cfg(simulated)]
pub use chosen::make_mistake;

/// Whether a mistake is made on purpose.
pub(crate) fn is_made(mistake: Mistake) -> bool {
    #[cfg(simulated)]
    return chosen::is_made(mistake);
    #[cfg(not(simulated))]
    {
        let _ = mistake;
        false
    }
}
