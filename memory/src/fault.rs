//! Page faults.
//!
//! A fault takes the area lock shared, so faults of one process run side by side. It looks at the area (may this access
//! be?), then at the entry (why was it not?), prepares what is needed without the table's lock, takes the lock, and
//! installs it only if the entry is still what it was; else another CPU was faster, and we look again.
//!
//! In an area that is watched, the fault may be its monitor's to resolve (`userfault`). Else what the entry says decides:
//! * empty: bring in the page, or a large one around it (`large`). Nothing can be cached, so nothing is flushed. Where it says that the page
//!   is guarded it comes guarded, and a store then finds it so.
//! * says that the page is in a slot: claim it from there (`swap_in`).
//! * allows the access: *spurious* if hardware said that the page was present (it held an older entry, with less
//!   rights, which the fault itself dropped), else *raced*: another CPU brought the page in. Either way: retry.
//! * not writable, but the area is: `copy_on_write`.
//! * otherwise the entry lags behind the area: raise it to the area's rights. That only adds rights.

use core::sync::atomic::Ordering::Relaxed;

use coherence::{Cause, Platform};

use crate::address_space::{AddressSpace, Layout, Shared};
use crate::area::{Area, AreaFlags, Source, object_page};
use crate::areas::LOWEST_PLACEMENT;
use crate::backing::BackingError;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::{Error, Fault};
use crate::frame::FrameRef;
use crate::limits::Limit;
use crate::map::has_guard_gap;
use crate::mistake::{Mistake, is_made};
use crate::monitor::Origin;
use crate::object::MemoryObject;
use crate::range::{PAGE_SIZE, USER_END, round_down};
use crate::rights::{Access, Rights};
use crate::userfault::Told;

/// So many spurious faults of one page in a row are believed to be the hardware's business.
const MOST_SPURIOUS: u64 = 4;

/// How one attempt to resolve a fault ended.
pub(crate) enum Attempt {
    /// The access may be retried.
    Done,
    /// The entry changed meanwhile: look again.
    Again,
    /// The page must be brought in first, for which no lock may be held.
    Absent,
}

impl<E: Environment> AddressSpace<E> {
    /// Resolves a page fault of the program at a user address, or says why the access may not be. `present` is what hardware said:
    /// it found an entry, and that did not allow the access.
    ///
    /// May sleep (for the area lock, and for a monitor). Interrupts must be on.
    ///
    /// # Errors
    /// As [`Fault`] says. After [`Fault::OutOfMemory`] nothing has changed, and the access may be retried.
    pub fn handle_fault(&self, address: u64, access: Access, present: bool) -> Result<(), Fault> {
        self.resolve(address, access, present, Origin::User)?;
        Ok(self.link(round_down(address))?)
    }

    /// As [`AddressSpace::handle_fault`], whoever's access it is.
    #[inline]
    pub(crate) fn resolve(
        &self,
        address: u64,
        access: Access,
        present: bool,
        origin: Origin,
    ) -> Result<(), Fault> {
        if address >= USER_END {
            return Err(Fault::NotMapped);
        }
        let page = round_down(address);
        loop {
            let layout = self.shared();
            let Some(area) = layout.areas.find(page) else {
                drop(layout);
                self.grow_stack(page, access)?;
                continue;
            };
            if !area.rights().allow(access) {
                return Err(Fault::NotAllowed);
            }
            // One look decides whether this is the monitor's, and what is done if it is not: between two of them the page may
            // be guarded, or dropped.
            let mut seen = layout.tables.peek(page);
            if area.is_watched() {
                if let Some(reason) = self.reason_to_tell(area, page, seen, access) {
                    match self.tell_fault(layout, (address, access, origin), reason)? {
                        Told::Again => continue,
                        Told::Later => return Ok(()),
                    }
                }
                if is_made(Mistake::GuardLostInCopy) {
                    seen = layout.tables.peek(page);
                }
            }
            let attempt = if seen.is_empty() {
                let large = if access.write { self.bring_in_large(&layout, area, page) } else { None };
                match large {
                    Some(attempt) => attempt,
                    None => self.bring_in(&layout, area, page, access, seen)?,
                }
            } else if let Some(slot) = seen.slot() {
                self.swap_in(&layout, area, page, access, (seen, slot))
            } else if !seen.holds_page() {
                self.bring_in_guarded(&layout, area, page, access)?
            } else if seen.permits(access) {
                if present {
                    self.note_spurious(page);
                }
                Attempt::Done
            } else if seen.is_large() {
                self.resolve_large(&layout, area, page, access)
            } else if access.write && seen.is_present() && !area.is_shared() {
                self.break_copy_on_write(&layout, area, page, seen)?
            } else {
                self.raise(&layout, area, page)
            };
            match attempt {
                Attempt::Done => return Ok(()),
                Attempt::Again => {}
                Attempt::Absent => self.fetch(layout, page)?,
            }
        }
    }

    /// Counts a spurious fault. Hardware dropped what it had of the page when it faulted (x86 does), so that the access passes now. If
    /// the same page comes again and again, this CPU is told to drop it: whatever the reason, an access may not fault for ever.
    ///
    /// Threads of the space count together, and lose counts to each other. Too many cost one invalidation, too few one more fault.
    fn note_spurious(&self, page: u64) {
        let coherence = self.environment.coherence();
        coherence.spurious_fault();
        let latest = self.spurious.load(Relaxed);
        let in_a_row = if round_down(latest) == page { latest - page + 1 } else { 1 };
        if in_a_row < MOST_SPURIOUS {
            self.spurious.store(page + in_a_row, Relaxed);
        } else {
            self.spurious.store(page, Relaxed);
            coherence.platform().invalidate_page(page);
        }
    }

    /// Maps a page where the entry is a guard alone, for no more than loads: a store looks again.
    #[cold]
    fn bring_in_guarded(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        page: u64,
        access: Access,
    ) -> Result<Attempt, Fault> {
        let attempt = self.bring_in(layout, area, page, Access { write: false, ..access }, Entry::GUARD)?;
        Ok(if access.write && matches!(attempt, Attempt::Done) { Attempt::Again } else { attempt })
    }

    /// Maps a page where the entry is `seen`, which holds none.
    fn bring_in(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        page: u64,
        access: Access,
        seen: Entry,
    ) -> Result<Attempt, Fault> {
        let object = area.backing().and_then(|backing| backing.object());
        let cuts = object.map(MemoryObject::cuts);
        let (frame, writable) = match &area.source {
            Source::Anonymous if access.write => (Some(FrameRef::zeroed(&self.environment)?), true),
            Source::Anonymous => (None, false),
            Source::Object { backing, distance } => {
                let frame = match backing.frame(object_page(page, *distance)) {
                    Err(BackingError::NotYet) => return Ok(Attempt::Absent),
                    frame => frame.map_err(fault_of)?,
                };
                if access.write && !area.is_shared() {
                    (Some(self.private_copy(&frame)?), true)
                } else {
                    (Some(frame), area.is_shared())
                }
            }
        };
        let is_private = writable && !area.is_shared();
        if is_private {
            area.note_private_page();
        }
        let number = frame.as_ref().map_or(self.environment.frames().zero_frame(), FrameRef::number);
        let mut entry = Entry::page(number, area.rights(), writable);
        if access.write {
            // Set now what hardware would set next.
            entry = entry.with(Bits::DIRTY);
        }
        if seen.has(Bits::GUARDED) {
            entry = entry.guarded();
        }
        let Some(mut leaf) = layout.tables.leaf_or_create(page)? else {
            return Ok(Attempt::Again);
        };
        let now = leaf.entry(page);
        // Guarded since, or no longer: then this is another fault.
        if now.holds_page() || (now != seen && !is_made(Mistake::AbsentGuardOverwritten)) {
            return Ok(Attempt::Again);
        }
        if object.map(MemoryObject::cuts) != cuts && !is_made(Mistake::LostPageMapped) {
            // The page may have been cut off since it was got, by someone who looked here before (`truncate`).
            return Ok(Attempt::Again);
        }
        if !area.is_shared() {
            // A batch may have taken another page out here and not flushed yet. Some CPU would go on using that beside this (D4).
            let coherence = self.environment.coherence();
            if is_private && !is_made(Mistake::CopyBesideWaitingPage) {
                coherence.settle(self.space(), Cause::Reclaim);
            } else {
                // The object's page, or zeroes. What waits to be flushed shows the first in the same frame (`waiting`), and never the second.
                coherence.settle_for_the_same_page(self.space(), Cause::Reclaim);
            }
        }
        // No flush for this page: the entry was not present, and no CPU caches that.
        leaf.replace(page, entry);
        if let Some(frame) = frame {
            // The entry holds the reference from now on.
            frame.into_number();
            self.note_resident(1);
        }
        Ok(Attempt::Done)
    }

    /// Has a page brought in that is in a slot, or that an area shows, without its lock.
    #[cold]
    fn fetch(&self, layout: Shared<'_, E>, page: u64) -> Result<(), Fault> {
        if let Some(slot) = layout.tables.peek(page).slot() {
            drop(layout);
            return self.environment.swap().bring_in(&self.environment, slot).map_err(fault_of);
        }
        let shown = layout.areas.find(page).and_then(|area| area.shown(page));
        let shown = shown.map(|(backing, index)| (backing.clone(), index));
        drop(layout);
        shown.map_or(Ok(()), |(backing, index)| backing.bring_in(index).map_err(fault_of))
    }

    /// A frame of this mapping's own with an object's page in it. The object's frame may be written through other
    /// mappings meanwhile; what a private mapping sees of such stores is unspecified until it has its copy.
    fn private_copy(&self, frame: &FrameRef<E>) -> Result<FrameRef<E>, Fault> {
        let copy = FrameRef::allocate(&self.environment)?;
        self.environment.frames().copy(frame.number(), copy.number());
        Ok(copy)
    }

    /// Raises an entry to what the area allows: a page that lost rights to `PROT_NONE` and has them back, or a shared
    /// page that was mapped before the area became writable.
    fn raise(&self, layout: &Layout<E>, area: &Area<E>, page: u64) -> Attempt {
        let Some(mut leaf) = layout.tables.leaf(page) else {
            return Attempt::Again;
        };
        let mut changes = self.changes_under_lock(Cause::Mprotect);
        if !leaf.entry(page).holds_page() {
            return Attempt::Again;
        }
        if let Some((old, new)) = leaf.update(page, |old| Some(self.entry_for(area, old))) {
            // Rights are only added (the policy finds that out, and flushes nothing unless it is told to).
            changes.changed(&leaf, page, old, new);
        }
        // A private page that must be copied first is still not writable: the next look sends it there.
        Attempt::Again
    }

    /// Lets a stack grow down to the page, if the area above it is one and may.
    fn grow_stack(&self, page: u64, access: Access) -> Result<(), Fault> {
        let mut layout = self.exclusive();
        let Some(above) = layout.areas.first_ending_above(page) else {
            return Err(Fault::NotMapped);
        };
        let start = above.start();
        if start <= page {
            // Mapped since we looked.
            return Ok(());
        }
        let growth = (start - page) / PAGE_SIZE;
        let size = above.end() - page;
        let may_lock = self.check_growth_of_locked(&layout, above.flags(), growth).is_ok();
        let is_stack = above.has_flag(AreaFlags::GROWS_DOWN);
        let is_accounted = above.rights().contains(Rights::WRITE);
        if !is_stack || page < LOWEST_PLACEMENT || size > self.limits.get(Limit::Stack) {
            return Err(Fault::NotMapped);
        }
        if !may_lock || !has_guard_gap(&layout, page) || self.check_expansion(&layout, growth).is_err() {
            return Err(Fault::NotMapped);
        }
        if is_accounted && self.check_commitment(&layout, growth) == Err(Error::OutOfMemory) {
            return Err(Fault::NotMapped);
        }
        layout.areas.grow_down(start, page);
        // In one step with its page: else a thread that protects or unmaps what has grown would come before the access that made it grow.
        if let Some(area) = layout.areas.find(page)
            && area.rights().allow(access)
            && !area.is_watched()
        {
            self.bring_in(&layout, area, page, access, Entry::EMPTY)?;
        }
        Ok(())
    }
}

pub(crate) fn fault_of(error: BackingError) -> Fault {
    match error {
        BackingError::PastEnd | BackingError::NotYet | BackingError::Failed => Fault::Bus,
        BackingError::OutOfMemory => Fault::OutOfMemory,
    }
}
