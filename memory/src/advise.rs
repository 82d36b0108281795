//! Advice about memory: `madvise`.
//!
//! Areas stay, so what is dropped comes back by the next fault; `drop_pages` says how that is kept in order.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::announcements::Announcements;
use crate::area::{Area, AreaFlags, Source, object_page};
use crate::environment::Environment;
use crate::error::Error;
use crate::hole::{Hole, punch_all};
use crate::mistake::{Mistake, is_made};
use crate::monitor::{Event, Monitor, Wishes};
use crate::object::MemoryObject;
use crate::page_table::LEAF_SPAN;
use crate::range::PageRange;
use crate::rights::Rights;
use crate::unmap::Guards;

/// What is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `MADV_DONTNEED`: drop the pages; anonymous memory reads as zeroes again, objects are read again.
    DontNeed,
    /// `MADV_DONTNEED_LOCKED`: also where the pages are locked.
    DontNeedLocked,
    /// `MADV_FREE`: the pages may be dropped when memory is short. We drop them at once: it is allowed, it gives the
    /// memory back, and nothing has to remember which page was written to again since.
    Free,
    /// `MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`: bring all pages in, and say if that failed.
    Populate {
        /// For stores.
        write: bool,
    },
    /// `MADV_DONTFORK`, `MADV_WIPEONFORK`, `MADV_DONTDUMP` and their opposites.
    Mark {
        /// Which mark.
        flag: AreaFlags,
        /// Set it or take it away.
        set: bool,
    },
    /// `MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`: which pages the area prefers.
    Pages {
        /// Large ones.
        large: bool,
    },
    /// `MADV_COLD`, `MADV_PAGEOUT`: pages that will not be used soon. Refused for locked ones; concerns what comes from stores.
    Retire {
        /// They are taken back now.
        at_once: bool,
    },
    /// `MADV_REMOVE`: holes in the objects that are mapped shared.
    Remove,
    /// `MADV_COLLAPSE`: into large pages, now.
    Collapse,
    /// Everything that may be ignored.
    Hint,
}

impl<E: Environment> AddressSpace<E> {
    /// Takes advice about a range.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole in the range (the mapped parts are still treated) and for a lack of memory;
    /// [`Error::Invalid`] for advice that the mapping cannot take; [`Error::NotMapped`] if populating met an access
    /// that cannot be.
    pub fn advise(&self, range: PageRange, advice: Advice) -> Result<(), Error> {
        match advice {
            Advice::DontNeed => self.tell_and_drop(range, Cause::Dontneed, false),
            Advice::DontNeedLocked => self.tell_and_drop(range, Cause::Dontneed, true),
            Advice::Free => self.tell_and_drop(range, Cause::Free, false),
            Advice::Populate { write } => self.populate_strictly(range, write),
            Advice::Mark { flag, set } => self.mark(range, flag, set),
            Advice::Pages { large } => {
                let (wanted, unwanted) = (AreaFlags::LARGE_PAGES, AreaFlags::SMALL_PAGES);
                let (set, clear) = if large { (wanted, unwanted) } else { (unwanted, wanted) };
                self.note_advice(&mut self.exclusive(), range, |flags| flags.difference(clear) | set)
            }
            Advice::Retire { at_once } => {
                let verdict = self.check_retiring(range);
                if verdict != Err(Error::Invalid) {
                    self.retire(&[range], at_once);
                }
                verdict
            }
            Advice::Remove => self.punch_holes(range),
            Advice::Collapse => self.collapse(&[range]).1,
            Advice::Hint if self.shared().areas.is_covered(range) => Ok(()),
            Advice::Hint => Err(Error::OutOfMemory),
        }
    }

    /// Takes the same advice about several ranges, up to the first that has an error; says how many had none, and that error. One
    /// round of interrupts at most, however many there are: what could need more is not offered for several.
    pub(crate) fn advise_each(&self, ranges: &[PageRange], advice: Advice) -> (usize, Result<(), Error>) {
        match advice {
            Advice::Collapse => self.collapse(ranges),
            Advice::Retire { at_once } => {
                let verdicts = ranges.iter().map(|range| self.check_retiring(*range)).enumerate();
                let mut refused =
                    verdicts.filter_map(|(index, verdict)| verdict.err().map(|error| (index, Err(error))));
                let (accepted, verdict) = refused.next().unwrap_or((ranges.len(), Ok(())));
                self.retire(&ranges[..accepted], at_once);
                (accepted, verdict)
            }
            _ => {
                let refused = ranges.iter().map(|range| self.advise(*range, advice)).enumerate();
                let mut refused =
                    refused.filter_map(|(index, result)| result.err().map(|error| (index, error)));
                refused.next().map_or((ranges.len(), Ok(())), |(index, error)| (index, Err(error)))
            }
        }
    }

    /// Tells monitors that want to hear of it that pages are about to be dropped, waits until they have heard, and drops them.
    fn tell_and_drop(&self, range: PageRange, cause: Cause, even_locked: bool) -> Result<(), Error> {
        if self.has_monitors.load(Relaxed) {
            self.tell_of_removal(range, |area| is_refused(area, (cause, even_locked)));
        }
        self.drop_pages(range, cause, even_locked)
    }

    #[cold]
    fn tell_of_removal(&self, range: PageRange, refuses: impl Fn(&Area<E>) -> bool) {
        let mut announcements = Announcements::<E>::NONE;
        let layout = self.shared();
        for area in layout.areas.overlapping(range) {
            if refuses(area) {
                break;
            }
            if let Some(monitor) = layout.monitors.of(area)
                && monitor.wishes().contains(Wishes::REMOVE)
                && let Some(part) = area.range().intersection(&range)
            {
                announcements.note(monitor, Event::Remove(part));
            }
        }
        drop(layout);
        announcements.tell();
    }

    /// Drops the pages of a range, and flushes before anybody can bring one of them back: a thread that did would see
    /// the new page while another still held the old one (D4). What shuts faults out meanwhile is the table's lock,
    /// if the range lies in one table, and else the exclusive area lock.
    fn drop_pages(&self, range: PageRange, cause: Cause, even_locked: bool) -> Result<(), Error> {
        let lies_in_one_table = range.start() / LEAF_SPAN == (range.end() - 1) / LEAF_SPAN;
        if lies_in_one_table {
            let layout = self.shared();
            let mut leaf = layout.tables.leaf(range.start());
            if leaf.is_none() && !layout.tables.is_vacant(range.start()) {
                // A large page may have to be cut, or has just come to pieces.
                drop(leaf);
                drop(layout);
                return self.drop_pages_alone(range, cause, even_locked);
            }
            let mut changes = self.changes_under_lock(cause);
            let dropped = for_each_droppable(&layout, range, (cause, even_locked), |part, guards| {
                if let Some(leaf) = &mut leaf {
                    self.zap_leaf(leaf, part, guards, &mut changes);
                }
            });
            if is_made(Mistake::DropFlushedAfterUnlock) {
                drop(leaf);
            }
            dropped
        } else {
            self.drop_pages_alone(range, cause, even_locked)
        }
        // Whichever it was: `changes` is dropped first, and so flushed before its lock is released.
    }

    fn drop_pages_alone(&self, range: PageRange, cause: Cause, even_locked: bool) -> Result<(), Error> {
        let layout = self.exclusive();
        let mut changes = self.changes(cause);
        self.cut(&layout.tables, range, &mut changes);
        for_each_droppable(&layout, range, (cause, even_locked), |part, guards| {
            self.zap(&layout.tables, part, guards, &mut changes);
        })
    }

    /// Punches holes into the objects of a range, area by area up to the first that does not allow it, all as one round.
    fn punch_holes(&self, range: PageRange) -> Result<(), Error> {
        if self.has_monitors.load(Relaxed) {
            self.tell_of_removal(range, |area| check_punchable(area).is_err());
        }
        let mut holes = Vec::new();
        let mut verdict = Ok(());
        let layout = self.shared();
        for area in layout.areas.overlapping(range) {
            verdict = check_punchable(area);
            if verdict.is_err() {
                break;
            }
            if let (Source::Object { backing, distance }, Some(part)) =
                (&area.source, area.range().intersection(&range))
            {
                if backing.object().is_some_and(MemoryObject::is_stored) {
                    // A store has no holes; what is there is to stay.
                    verdict = Err(Error::Invalid);
                    break;
                }
                let first = object_page(part.start(), *distance);
                // A mapping may reach further than any object.
                let pages = first..first.saturating_add(part.pages());
                holes.push(Hole { backing: backing.clone(), pages });
            }
        }
        if verdict.is_ok() && !layout.areas.is_covered(range) {
            verdict = Err(Error::OutOfMemory);
        }
        // Who waits for a hole holds an area lock; so who makes one must not.
        drop(layout);
        punch_all(&self.environment, &holes)?;
        verdict
    }

    /// Sets or clears a flag of all areas in the range.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole, [`Error::Again`] for too many areas, [`Error::Invalid`] for `MADV_WIPEONFORK` of
    /// anything but private anonymous memory.
    pub fn mark(&self, range: PageRange, flag: AreaFlags, set: bool) -> Result<(), Error> {
        let marked = |mut flags: AreaFlags| {
            flags.set(flag, set);
            flags
        };
        let mut layout = self.exclusive();
        let is_wipe = set && flag == AreaFlags::WIPED_ON_FORK;
        let refused = layout.areas.overlapping(range).find(|area| is_wipe && !area.is_private_anonymous());
        if let Some(start) = refused.map(Area::start) {
            // What lies before it is marked all the same, as on Linux.
            if let Some(before) = PageRange::between(range.start(), start.max(range.start())) {
                match self.note_advice(&mut layout, before, marked) {
                    // A hole would be told in the end, and this is not reached.
                    Ok(()) | Err(Error::OutOfMemory) => {}
                    Err(error) => return Err(error),
                }
            }
            return Err(Error::Invalid);
        }
        self.note_advice(&mut layout, range, marked)
    }

    /// Changes the flags of all areas in the range; that there are too many areas is said as `madvise` says it.
    fn note_advice(
        &self,
        layout: &mut Layout<E>,
        range: PageRange,
        change: impl Fn(AreaFlags) -> AreaFlags,
    ) -> Result<(), Error> {
        let splits = layout.areas.splits_at_ends(range);
        layout.areas.check_count(splits).map_err(|_| Error::Again)?;
        self.change_flags(layout, range, change)
    }

    /// Changes the flags of all areas in the range.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole or too many areas.
    pub(crate) fn change_flags(
        &self,
        layout: &mut Layout<E>,
        range: PageRange,
        change: impl Fn(AreaFlags) -> AreaFlags,
    ) -> Result<(), Error> {
        layout.areas.check_count(layout.areas.splits_at_ends(range))?;
        let is_covered = layout.areas.is_covered(range);
        let mut changes = self.cuts(&layout.tables, range).then(|| self.changes(Cause::Madvise));
        if let Some(changes) = &mut changes {
            self.cut(&layout.tables, range, changes);
        }
        layout.areas.change(range, |area| area.set_flags(change(area.flags())));
        drop(changes);
        if is_covered { Ok(()) } else { Err(Error::OutOfMemory) }
    }
}

/// Calls `drop_part` for the mapped parts of a range, up to the first whose pages may not be dropped.
fn for_each_droppable<E: Environment>(
    layout: &Layout<E>,
    range: PageRange,
    refusal: (Cause, bool),
    mut drop_part: impl FnMut(PageRange, Guards),
) -> Result<(), Error> {
    for area in layout.areas.overlapping(range) {
        if is_refused(area, refusal) {
            return Err(Error::Invalid);
        }
        if let Some(part) = area.range().intersection(&range) {
            drop_part(part, if area.backing().is_some() { Guards::Stay } else { Guards::Go });
        }
    }
    if layout.areas.is_covered(range) { Ok(()) } else { Err(Error::OutOfMemory) }
}

/// Whether holes may be punched through an area: one that is shared, not locked, and may come to be written. (What it may come to allow
/// counts, not what it allows now: so does Linux since a correction of its 6.1.)
fn check_punchable<E: Environment>(area: &Area<E>) -> Result<(), Error> {
    if area.has_flag(AreaFlags::LOCKED) || area.backing().is_none() {
        return Err(Error::Invalid);
    }
    if area.is_shared() && area.may.contains(Rights::WRITE) { Ok(()) } else { Err(Error::NotAllowed) }
}

/// Whether an area's pages may not be dropped, by whom and however that is asked.
fn is_refused<E: Environment>(area: &Area<E>, (cause, even_locked): (Cause, bool)) -> bool {
    (area.has_flag(AreaFlags::LOCKED) && !even_locked)
        || (cause == Cause::Free && !area.is_private_anonymous())
}
