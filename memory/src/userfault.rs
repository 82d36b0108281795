//! Watching areas, and the faults that are told to their monitors instead of being resolved (`userfaultfd`).
//!
//! | file | holds |
//! |---|---|
//! | `monitor.rs` | what a monitor is, and why no wake-up is lost |
//! | `userfault.rs` | who watches what; faults |
//! | `userfault_fill.rs` | pages that a monitor fills in |
//! | `userfault_guard.rs` | taking the right to write until the monitor has heard of a store |
//! | `announcements.rs` | changes that monitors are told of |
//!
//! An area carries the number of its monitor and which faults that wants, so that an area which nobody watches costs a fault one look at
//! its flags. Who watches changes only under the exclusive area lock. So a fault, which holds it shared, sees one answer from its
//! look at the area to the change of the entry, and no entry is guarded in an area that is not watched for stores.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout, Shared};
use crate::area::{Area, AreaFlags, Source, object_page};
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::{Error, Fault};
use crate::mistake::{Mistake, is_made};
use crate::monitor::{Monitor, Origin, Reason, Waited, Watch, WatchedFault, Wishes};
use crate::range::{PAGE_SIZE, PageRange, round_down};
use crate::rights::{Access, Rights};

/// The monitors of one address space, by the numbers that areas know them by.
pub(crate) struct Monitors<E: Environment> {
    last: u32,
    list: Vec<(u32, Arc<E::Monitor>)>,
}

impl<E: Environment> Monitors<E> {
    pub(crate) fn new() -> Self {
        Self { last: 0, list: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Who watches an area.
    pub(crate) fn of(&self, area: &Area<E>) -> Option<&Arc<E::Monitor>> {
        let watcher = area.watcher();
        self.list.iter().find(|(number, _)| *number == watcher).map(|(_, monitor)| monitor)
    }

    fn number_of(&self, monitor: &Arc<E::Monitor>) -> Option<u32> {
        self.list.iter().find(|(_, known)| Arc::ptr_eq(known, monitor)).map(|(number, _)| *number)
    }

    /// Lets areas be watched by this one; says by which number.
    pub(crate) fn enter(&mut self, monitor: &Arc<E::Monitor>) -> u32 {
        self.number_of(monitor).unwrap_or_else(|| {
            self.last += 1;
            self.list.push((self.last, monitor.clone()));
            self.last
        })
    }

    fn remove(&mut self, number: u32) {
        self.list.retain(|(known, _)| *known != number);
    }
}

/// How a fault that was told ended.
pub(crate) enum Told {
    /// It is worth looking again.
    Again,
    /// The program has something else to do first; it will try again.
    Later,
}

impl<E: Environment> AddressSpace<E> {
    /// Lets a monitor watch the areas of a range. Those that it watches for all this already stay as they are.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if nothing is mapped from the range's start on, the space has ended, or there would be too many areas;
    /// [`Error::Invalid`] if nothing is mapped in the range, or something that cannot be watched so; [`Error::Permission`] for a
    /// mapping that can never be written; [`Error::Busy`] if another monitor watches some of it.
    pub fn watch(&self, range: PageRange, monitor: &Arc<E::Monitor>, watch: Watch) -> Result<(), Error> {
        let mut layout = self.exclusive();
        layout.check_mapped_from(range)?;
        let known = layout.monitors.number_of(monitor);
        for area in layout.areas.overlapping(range) {
            if !can_be_watched(area, watch) {
                return Err(Error::Invalid);
            }
            if !area.may.contains(Rights::WRITE) {
                return Err(Error::Permission);
            }
            if area.is_watched() && Some(area.watcher()) != known {
                return Err(Error::Busy);
            }
        }
        layout.areas.check_count(layout.areas.splits_at_ends(range))?;
        let number = layout.monitors.enter(monitor);
        self.has_monitors.store(true, Relaxed);
        let flags = AreaFlags::watching(watch);
        self.split_all(&layout.tables, range, Cause::Userfault);
        self.change_watch(&mut layout, range, |area| {
            if area.watcher() != number || !area.flags().contains(flags) {
                area.set_watch(number, watch);
            }
        });
        Ok(())
    }

    /// Lets nobody watch the areas of a range any more.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] and [`Error::Invalid`] as for [`AddressSpace::watch`].
    pub fn unwatch(&self, range: PageRange) -> Result<(), Error> {
        let mut layout = self.exclusive();
        layout.check_mapped_from(range)?;
        if layout.areas.overlapping(range).any(|area| !can_be_watched(area, Watch::empty())) {
            return Err(Error::Invalid);
        }
        layout.areas.check_count(layout.areas.splits_at_ends(range))?;
        self.split_all(&layout.tables, range, Cause::Userfault);
        self.change_watch(&mut layout, range, Area::clear_watch);
        Ok(())
    }

    /// A monitor goes away: it watches nothing any more.
    pub fn unwatch_all(&self, monitor: &Arc<E::Monitor>) {
        let mut layout = self.exclusive();
        let Some(number) = layout.monitors.number_of(monitor) else { return };
        let is_its_own = |area: &&Area<E>| area.watcher() == number;
        let ranges: Vec<_> = layout.areas.iter().filter(is_its_own).map(Area::range).collect();
        for range in ranges {
            self.change_watch(&mut layout, range, Area::clear_watch);
        }
        layout.monitors.remove(number);
    }

    /// Changes who watches the areas of a range. Whoever waits there looks again, and nothing stays guarded where nobody watches
    /// for stores.
    fn change_watch(&self, layout: &mut Layout<E>, range: PageRange, change: impl Fn(&Area<E>)) {
        let Layout { areas, tables, monitors, .. } = layout;
        areas.change(range, |area| {
            let before = area.is_watched().then(|| monitors.of(area)).flatten();
            let was_guarded = area.has_flag(AreaFlags::WATCHED_STORES);
            change(area);
            if was_guarded && !area.has_flag(AreaFlags::WATCHED_STORES) {
                self.unguard_pages(tables, area, area.range());
            }
            if let Some(monitor) = before
                && !is_made(Mistake::UnwatchedWithoutWaking)
            {
                monitor.wake(area.range());
            }
        });
    }

    /// Why a fault is told to the area's monitor, which found this entry; `None` if it is not.
    #[cold]
    pub(crate) fn reason_to_tell(
        &self,
        area: &Area<E>,
        page: u64,
        entry: Entry,
        access: Access,
    ) -> Option<Reason> {
        if entry.holds_page() || entry.is_swapped() {
            return (access.write && entry.has(Bits::GUARDED)).then_some(Reason::Guarded);
        }
        let (watches_missing, watches_minor) =
            (area.has_flag(AreaFlags::WATCHED_MISSING), area.has_flag(AreaFlags::WATCHED_MINOR));
        let Source::Object { backing, distance } = &area.source else {
            return watches_missing.then_some(Reason::Missing);
        };
        let index = object_page(page, *distance);
        if backing.object().is_some_and(|object| object.has_page(index)) {
            return watches_minor.then_some(Reason::Minor);
        }
        // Behind the object's end nothing can be filled in.
        let is_inside = index < backing.size().div_ceil(PAGE_SIZE);
        (watches_missing && is_inside).then_some(Reason::Missing)
    }

    /// Tells a fault to the area's monitor, and waits.
    ///
    /// # Errors
    /// [`Fault::Bus`] if the monitor wants signals, or hears of no fault of the kernel's; [`Fault::Abandoned`] if the program ends meanwhile.
    #[cold]
    pub(crate) fn tell_fault(
        &self,
        layout: Shared<'_, E>,
        (address, access, origin): (u64, Access, Origin),
        reason: Reason,
    ) -> Result<Told, Fault> {
        let page = round_down(address);
        let Some(area) = layout.areas.find(page) else { return Ok(Told::Again) };
        let Some(monitor) = layout.monitors.of(area).cloned() else { return Ok(Told::Again) };
        let wishes = monitor.wishes();
        if wishes.contains(Wishes::SIGNAL) || (origin == Origin::Kernel && wishes.contains(Wishes::USER_ONLY))
        {
            return Err(Fault::Bus);
        }
        let ticket = monitor.announce(WatchedFault { address, write: access.write, reason });
        // Once more: whoever resolved it before it was announced found nobody to wake.
        let is_resolved = self.reason_to_tell(area, page, layout.tables.peek(page), access).is_none();
        drop(layout);
        if is_resolved && !is_made(Mistake::ToldWithoutLookingAgain) {
            monitor.withdraw(ticket);
            return Ok(Told::Again);
        }
        match (monitor.wait(ticket, origin), origin) {
            (Waited::Woken, _) => Ok(Told::Again),
            (Waited::Interrupted, Origin::User) => Ok(Told::Later),
            (Waited::Interrupted, Origin::Kernel) => Err(Fault::Abandoned),
        }
    }
}

impl<E: Environment> Layout<E> {
    /// Checks that something is mapped in a range, with the two errors that Linux has for it.
    fn check_mapped_from(&self, range: PageRange) -> Result<(), Error> {
        let first = self.areas.first_ending_above(range.start()).ok_or(Error::OutOfMemory)?;
        if first.start() >= range.end() { Err(Error::Invalid) } else { Ok(()) }
    }
}

/// Whether an area's faults can be told: those of anonymous memory, and of objects whose pages are known.
fn can_be_watched<E: Environment>(area: &Area<E>, watch: Watch) -> bool {
    match area.backing() {
        None => !watch.contains(Watch::MINOR),
        Some(backing) => {
            // The pages of a disk are written out by whoever cleans them, and come back from there.
            backing.object().is_some_and(|object| !object.is_stored())
        }
    }
}
