//! Locking memory: `mlock` and its kin, and how much may be locked.
//!
//! Nothing here ever leaves memory unless the program says so, so locking means three things: the pages are brought in now (or, if asked
//! so, when they are used), the areas are marked, which `madvise` and `/proc` look at, and they count against the limit.
//!
//! The limit is the program's, or none if it may lock as much as it likes; the kernel says which ([`Limit::Locked`]). What is locked is
//! counted by looking at all areas, and only where there is a limit: most programs have none, or lock nothing.

use crate::address_space::{AddressSpace, Layout};
use crate::area::AreaFlags;
use crate::environment::Environment;
use crate::error::Error;
use crate::limits::Limit;
use crate::range::{PAGE_SIZE, PageRange};

impl AreaFlags {
    /// All that locking sets.
    pub(crate) const LOCKS: Self = Self::LOCKED.union(Self::LOCKED_ON_FAULT);

    /// Locked, with the pages brought in now or when they are used.
    fn locked(on_fault: bool) -> Self {
        if on_fault { Self::LOCKS } else { Self::LOCKED }
    }

    /// Whether pages of such an area are brought in at once.
    pub(crate) fn brings_in(self) -> bool {
        self.intersection(Self::LOCKS) == Self::LOCKED
    }
}

impl<E: Environment> AddressSpace<E> {
    /// Whether anything may be locked at all.
    ///
    /// # Errors
    /// [`Error::Permission`] for a limit of 0.
    pub fn check_locking(&self) -> Result<(), Error> {
        if self.limits.get(Limit::Locked) == 0 { Err(Error::Permission) } else { Ok(()) }
    }

    /// How many pages are locked.
    pub fn locked_pages(&self) -> u64 {
        locked_pages_of(&self.shared())
    }

    /// Marks a range as locked and brings its pages in, unless that is left to faults.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] above the limit, for a hole in the range (what lies before it is marked), and for pages that may not be accessed
    /// or are not there; [`Error::Again`] for such that could not be had.
    pub fn lock(&self, range: PageRange, on_fault: bool) -> Result<(), Error> {
        let mut layout = self.exclusive();
        let locked_before: u64 = locked_in(&layout, range);
        let others = || locked_pages_of(&layout) - locked_before;
        self.check_locked(range.pages(), others).map_err(|_| Error::OutOfMemory)?;
        self.mark_locked(&mut layout, range, AreaFlags::locked(on_fault))?;
        drop(layout);
        if on_fault { Ok(()) } else { self.bring_in_areas(range) }
    }

    /// Takes the marks of a range away.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole in the range (what lies before it is unmarked).
    pub fn unlock(&self, range: PageRange) -> Result<(), Error> {
        self.mark_locked(&mut self.exclusive(), range, AreaFlags::empty())
    }

    /// Marks all areas that there are, or all that will be, or both.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if more is mapped than may be locked.
    pub fn lock_all(&self, current: bool, future: bool, on_fault: bool) -> Result<(), Error> {
        let mut layout = self.exclusive();
        if current {
            self.check_locked(layout.areas.mapped_pages(), || 0).map_err(|_| Error::OutOfMemory)?;
        }
        let locked = AreaFlags::locked(on_fault);
        layout.locks_to_come = if future { locked } else { AreaFlags::empty() };
        if current {
            self.mark_all(&mut layout, locked);
        }
        drop(layout);
        if current && !on_fault {
            // That some cannot be had is no error here.
            let _ = self.bring_in_areas(PageRange::whole());
        }
        Ok(())
    }

    /// Takes all marks away, also for what will be mapped.
    pub fn unlock_all(&self) {
        let mut layout = self.exclusive();
        layout.locks_to_come = AreaFlags::empty();
        self.mark_all(&mut layout, AreaFlags::empty());
    }

    /// Whether an area of such flags may be as many pages larger, or be made of so many.
    ///
    /// # Errors
    /// [`Error::Again`] if that locks too much.
    pub(crate) fn check_growth_of_locked(
        &self,
        layout: &Layout<E>,
        flags: AreaFlags,
        pages: u64,
    ) -> Result<(), Error> {
        if flags.contains(AreaFlags::LOCKED) {
            self.check_locked(pages, || locked_pages_of(layout))
        } else {
            Ok(())
        }
    }

    /// Brings pages in that have come to a locked area.
    pub(crate) fn bring_in_growth(&self, flags: AreaFlags, growth: Option<PageRange>) {
        if flags.brings_in()
            && let Some(growth) = growth
        {
            // They are locked whether or not they could be had.
            let _ = self.bring_in_areas(growth);
        }
    }

    fn check_locked(&self, more: u64, others: impl FnOnce() -> u64) -> Result<(), Error> {
        match self.limits.get(Limit::Locked) / PAGE_SIZE {
            most if most == u64::MAX / PAGE_SIZE => Ok(()),
            most if others().saturating_add(more) <= most => Ok(()),
            _ => Err(Error::Again),
        }
    }

    /// Gives all areas up to the first hole these marks.
    fn mark_locked(&self, layout: &mut Layout<E>, range: PageRange, locked: AreaFlags) -> Result<(), Error> {
        let start_of_hole = layout.areas.overlapping(range).try_fold(range.start(), |next, area| {
            if area.start() > next { Err(next) } else { Ok(area.end()) }
        });
        let (Ok(end) | Err(end)) = start_of_hole;
        if let Some(covered) = PageRange::between(range.start(), end.min(range.end())) {
            self.change_flags(layout, covered, |flags| flags.difference(AreaFlags::LOCKS) | locked)?;
        }
        if end < range.end() { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    fn mark_all(&self, layout: &mut Layout<E>, locked: AreaFlags) {
        // There are holes.
        let _ = self
            .change_flags(layout, PageRange::whole(), |flags| flags.difference(AreaFlags::LOCKS) | locked);
    }
}

fn locked_pages_of<E: Environment>(layout: &Layout<E>) -> u64 {
    let locked = layout.areas.iter().filter(|area| area.has_flag(AreaFlags::LOCKED));
    locked.map(|area| area.range().pages()).sum()
}

/// How many pages of a range are locked.
fn locked_in<E: Environment>(layout: &Layout<E>, range: PageRange) -> u64 {
    let locked = layout.areas.overlapping(range).filter(|area| area.has_flag(AreaFlags::LOCKED));
    locked.filter_map(|area| area.range().intersection(&range)).map(|part| part.pages()).sum()
}
