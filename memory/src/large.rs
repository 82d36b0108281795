//! Large pages of private anonymous memory: which get one, and what the operations make of one.
//!
//! A store to an empty place gets a large page if the area covers all of it, may have one (`large_pages` says who), nothing smaller than a
//! table is mapped there yet, and there is a free run of frames; else a small page, as ever. A load gets the page of zeroes, and with
//! it a table of small pages; only `MADV_COLLAPSE` makes a large page of those (`collapse.rs`).
//!
//! A large page never reaches out of its area, and no operation meets one in part (`split.rs`).

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::changes::Changes;
use crate::entry::{Bits, Entry, LARGE_FRAMES, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::fault::Attempt;
use crate::frame::FrameNumber;
use crate::large_entry::{Large, large_start};
use crate::large_frames::Run;
use crate::large_pages::LargePolicy;
use crate::page_table::{Mapping, PageTable};
use crate::range::PageRange;
use crate::rights::Access;

impl<E: Environment> AddressSpace<E> {
    /// Maps a large page around an empty entry that is to be stored to, if there may be one; `None` if a small one must do.
    #[inline]
    pub(crate) fn bring_in_large(&self, layout: &Layout<E>, area: &Area<E>, page: u64) -> Option<Attempt> {
        let may_be = match self.environment.frames().large_pages().policy() {
            LargePolicy::Always => !area.has_flag(AreaFlags::SMALL_PAGES),
            LargePolicy::Madvise => area.has_flag(AreaFlags::LARGE_PAGES),
            LargePolicy::Never => false,
        };
        // What a monitor is told of, fills in and guards are small pages.
        if !may_be || area.is_watched() {
            return None;
        }
        let start = large_start(page);
        let is_whole = area.range().covers(&PageRange::of_area(start, start + LARGE_PAGE_SIZE));
        let is_anonymous = area.is_private_anonymous() && !area.has_flag(AreaFlags::GROWS_DOWN);
        (is_whole && is_anonymous && layout.tables.has_room_for_large(page))
            .then(|| self.map_large(layout, area, start))
            .flatten()
    }

    /// `None` if there is no memory for it.
    fn map_large(&self, layout: &Layout<E>, area: &Area<E>, start: u64) -> Option<Attempt> {
        let frames = self.environment.frames();
        let Some((run, aside)) = self.with_table_aside(Run::zeroed(&self.environment)) else {
            frames.large_pages().note_fallback();
            return None;
        };
        let release_aside = || frames.release(self.environment.current_cpu(), aside);
        match layout.tables.room_for_large(start) {
            Ok(Some(mut room)) => {
                area.note_private_page();
                let entry = Entry::large_page(run.into_first(), area.rights(), true).with(Bits::DIRTY);
                // No flush: the entry was empty, and no CPU caches that. Nor has a batch taken anything out here that it has
                // not flushed: those take pages out of leaf tables, and where one has been it stays, or goes with a flush.
                room.put(entry, aside);
                self.note_resident(LARGE_FRAMES.into());
                drop(room);
                frames.large_pages().note_fault();
                Some(Attempt::Done)
            }
            Ok(None) => {
                release_aside();
                Some(Attempt::Again)
            }
            Err(_) => {
                release_aside();
                frames.large_pages().note_fallback();
                None
            }
        }
    }

    /// A table that a large page falls into one day.
    fn table_to_put_aside(&self) -> Result<FrameNumber, OutOfMemory> {
        self.environment.frames().allocate_user(self.environment.current_cpu())
    }

    /// A run, if there is one, with the table that its page falls into one day, if there is one for it.
    pub(crate) fn with_table_aside(&self, run: Option<Run<E>>) -> Option<(Run<E>, FrameNumber)> {
        run.and_then(|run| Some((run, self.table_to_put_aside().ok()?)))
    }

    /// Resolves a fault at a large page that does not allow the access, though its area does: raises the entry if the page is the
    /// mapping's own, or if it lags behind the area; else splits it, and the piece is copied.
    pub(crate) fn resolve_large(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        page: u64,
        access: Access,
    ) -> Attempt {
        let Some(mut large) = layout.tables.large(page) else { return Attempt::Again };
        let mut changes = self.changes_under_lock(Cause::CopyOnWrite);
        let now = large.entry();
        if now.permits(access) {
            return Attempt::Again;
        }
        if access.write && now.is_present() && !self.is_exclusive(now) {
            self.split(&mut large, page, &mut changes);
            return Attempt::Again;
        }
        // Rights are only added: the policy finds that out.
        self.change_large(&mut large, area, page, &mut changes);
        Attempt::Again
    }

    /// Gives a large page the rights of its area.
    pub(crate) fn change_large(
        &self,
        large: &mut Large<'_, E>,
        area: &Area<E>,
        address: u64,
        changes: &mut Changes<'_, E>,
    ) {
        let changed = large.update(|old| {
            let new = self.entry_for(area, old);
            (new != old).then_some(new)
        });
        if let Some((old, new)) = changed {
            changes.changed_large(large_start(address), old, new);
        }
    }

    /// Empties a large page's entry, all of which is in the range that is emptied, and takes over its references.
    pub(crate) fn zap_large(&self, large: &mut Large<'_, E>, part: PageRange, changes: &mut Changes<'_, E>) {
        debug_assert_eq!(part.length(), LARGE_PAGE_SIZE, "a large page was met in part");
        changes.settle();
        let taken = large.take_out();
        changes.changed_large(part.start(), taken.old, Entry::EMPTY);
        changes.release_run_later(taken.old.frame());
        if let Some(aside) = taken.aside {
            // No hardware has ever seen it.
            self.environment.frames().release(self.environment.current_cpu(), aside);
        }
        self.note_gone(LARGE_FRAMES.into());
    }

    /// As [`AddressSpace::zap_large`], where nothing will ever run again.
    pub(crate) fn release_large(&self, large: &mut Large<'_, E>) {
        let (frames, cpu) = (self.environment.frames(), self.environment.current_cpu());
        let taken = large.take_out();
        if let Some(aside) = taken.aside {
            frames.release(cpu, aside);
        }
        frames.release_run(cpu, taken.old.frame());
    }

    /// Shares a large page with a child: as a small one (`fork.rs`), all of it with one entry on each side.
    pub(crate) fn share_large(
        &self,
        child: &PageTable<E>,
        large: &mut Large<'_, E>,
        address: u64,
        changes: &mut Changes<'_, E>,
    ) -> Result<(), OutOfMemory> {
        changes.settle();
        let aside = self.table_to_put_aside()?;
        let frames = self.environment.frames();
        let room = child.room_for_large(address);
        let Ok(Some(mut room)) = room else {
            debug_assert!(room.is_err(), "a child has something mapped before it is");
            frames.release(self.environment.current_cpu(), aside);
            return Err(OutOfMemory);
        };
        let mut shared = large.entry();
        if shared.has(Bits::WRITABLE)
            && let Some((old, new)) = large.update(|old| Some(old.to_be_shared()))
        {
            changes.changed_large(address, old, new);
            shared = new;
        }
        frames.acquire_run(shared.frame());
        room.put(shared.unused(), aside);
        Ok(())
    }

    /// How many bytes of a range are mapped by large pages.
    pub fn large_in(&self, range: PageRange) -> u64 {
        let layout = self.shared();
        let mut bytes = 0;
        layout.tables.for_each(range, |mapping, part| {
            if let Mapping::Large(_) = mapping {
                bytes += part.length();
            }
        });
        bytes
    }
}
