//! Out of a slot, into memory: by faults, and for good when a disk is to be swapped to no longer.
//!
//! A fault that finds the entry of a slot claims the page from the cache (`swap`). If it is not there the fault lets go of its area lock, has the page
//! read into the cache, and looks at everything anew; by then the entry may be another, or be the same and belong to another page. Neither matters: what is in the cache
//! under a slot is the page of its owners, whoever those are now.
//!
//! A page whose slot had no other owner, and that nothing else refers to, is the mapping's own, and writable. Any other is not, and a store copies it, or finds by then that
//! it has become the mapping's own (`copy_on_write`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::Area;
use crate::backing::BackingError;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Fault;
use crate::fault::{Attempt, fault_of};
use crate::frame::FrameRef;
use crate::page_table::Mapping;
use crate::range::{PageRange, USER_END};
use crate::rights::Access;
use crate::store::{Direction, Store, Transfer};
use crate::swap::{Slot, Slots, Swap};
use crate::swap_disk::{Cached, State};

/// Pages that are read at once, at most: those of the next slots are likely to be wanted next.
const MOST_AT_ONCE: u32 = 8;

impl<E: Environment> AddressSpace<E> {
    /// Maps the page that an entry, last seen as `seen`, says is in a slot.
    pub(crate) fn swap_in(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        page: u64,
        access: Access,
        (seen, slot): (Entry, Slot),
    ) -> Attempt {
        let Some(mut leaf) = layout.tables.leaf(page) else { return Attempt::Again };
        if leaf.entry(page) != seen {
            return Attempt::Again;
        }
        // Who took the page out may not have flushed yet. Some CPU would go on storing to it after it is copied, or given to somebody else.
        self.environment.coherence().settle(self.space(), Cause::Reclaim);
        let Some(frame) = self.environment.swap().claim(&self.environment, slot) else {
            return Attempt::Absent;
        };
        let is_own = frame.is_alone();
        let mut entry = Entry::page(frame.into_number(), area.rights(), is_own);
        if seen.has(Bits::GUARDED) {
            entry = entry.guarded();
        }
        let is_stored_to = access.write && entry.has(Bits::WRITABLE);
        if is_stored_to {
            entry = entry.with(Bits::DIRTY);
        }
        // No flush for this page: the entry was not present, and no CPU caches that.
        leaf.replace(page, entry);
        self.note_resident(1);
        self.note_unswapped(1);
        drop(leaf);
        if access.write && !is_stored_to { Attempt::Again } else { Attempt::Done }
    }

    /// Brings back all pages that are on a disk, as long as `goes_on`, which is asked before each.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`] if there is no room for them, [`Fault::Bus`] if one cannot be read.
    pub fn bring_back(&self, disk: usize, goes_on: &dyn Fn() -> bool) -> Result<(), Fault> {
        let mut address = 0;
        while goes_on() {
            // Most are in memory already, read with the one before.
            self.environment.yield_if_needed();
            let layout = self.shared();
            let Some((page, seen, slot)) = first_swapped(&layout, address, disk) else { return Ok(()) };
            address = page;
            let Some(area) = layout.areas.find(page) else { continue };
            if let Attempt::Absent = self.swap_in(&layout, area, page, Access::READ, (seen, slot)) {
                drop(layout);
                self.environment.swap().bring_in(&self.environment, slot).map_err(fault_of)?;
            }
        }
        Ok(())
    }
}

/// The first page from an address on that is on that disk.
fn first_swapped<E: Environment>(
    layout: &Layout<E>,
    address: u64,
    disk: usize,
) -> Option<(u64, Entry, Slot)> {
    let rest = PageRange::between(address, USER_END)?;
    for area in layout.areas.overlapping(rest) {
        let part = area.range().intersection(&rest)?;
        let found = layout.tables.try_for_each(part, |mapping, part| {
            let Mapping::Leaf(leaf) = mapping else { return Ok(()) };
            let mut swapped = leaf
                .used_entries(part)
                .filter_map(|(page, entry)| Some((page, entry, entry.slot()?)))
                .filter(|(.., slot)| usize::from(slot.disk) == disk);
            swapped.next().map_or(Ok(()), Err)
        });
        if let Err(found) = found {
            return Some(found);
        }
    }
    None
}

/// Slots that are being read.
struct Reading<E: Environment> {
    first: Slot,
    frames: Vec<FrameRef<E>>,
    store: Arc<dyn Store<E>>,
    transfer: Arc<Transfer>,
}

/// What a look for a slot's page finds.
enum Found<E: Environment> {
    /// It is in the cache, or nobody's any more.
    Nothing,
    OnTheWay(Arc<dyn Store<E>>, Arc<Transfer>),
    /// To be read, with those behind it.
    Absent(Reading<E>),
}

impl<E: Environment> Swap<E> {
    /// Has the page of a slot read, and those behind it, unless it is in memory. Sleeps until it is here. It may be somewhere else again when the caller
    /// looks.
    pub(crate) fn bring_in(&self, environment: &E, slot: Slot) -> Result<(), BackingError> {
        self.waits.fetch_add(1, Relaxed);
        let mut most = MOST_AT_ONCE;
        loop {
            let found = self.slots.lock().find(environment, slot, most)?;
            match found {
                Found::Nothing => return Ok(()),
                Found::OnTheWay(store, transfer) => {
                    // How it ended is found by the next look.
                    let _ = store.wait(&transfer);
                    self.slots.lock().settle_arrival(environment, slot);
                }
                Found::Absent(Reading { first, frames, store, transfer }) => {
                    let pages = frames.len() as u32;
                    store.begin(Direction::In, first.page.into(), frames, &transfer);
                    let is_read = store.wait(&transfer).is_ok();
                    let mut slots = self.slots.lock();
                    (first.page..first.page + pages)
                        .for_each(|page| slots.settle_arrival(environment, Slot { page, ..first }));
                    drop(slots);
                    match (is_read, pages) {
                        (true, _) => drop(self.came.fetch_add(pages.into(), Relaxed)),
                        (false, 1) => return Err(BackingError::Failed),
                        // It may be one of the others that cannot be read.
                        (false, _) => most = 1,
                    }
                }
            }
        }
    }
}

impl<E: Environment> Slots<E> {
    fn find(&mut self, environment: &E, slot: Slot, most: u32) -> Result<Found<E>, BackingError> {
        let Some(disk) = self.disk(slot) else { return Ok(Found::Nothing) };
        match disk.cached.get(&slot.page).map(|cached| &cached.state) {
            Some(State::Coming(transfer)) => {
                return Ok(Found::OnTheWay(disk.store.clone(), transfer.clone()));
            }
            None if disk.owners(environment, slot.page) > 0 => {}
            _ => return Ok(Found::Nothing),
        }
        let (store, transfer) = (disk.store.clone(), Transfer::pending());
        let most = u64::from(most).min(store.most_pages()) as u32;
        let mut frames = Vec::new();
        for page in slot.page..slot.page.saturating_add(most) {
            if disk.owners(environment, page) == 0 || disk.cached.contains_key(&page) {
                break;
            }
            let frame = match FrameRef::allocate(environment) {
                Ok(frame) => frame,
                Err(_) if frames.is_empty() => return Err(BackingError::OutOfMemory),
                // Who reads ahead does not press.
                Err(_) => break,
            };
            frames.push(frame.clone());
            disk.cached.insert(page, Cached { frame, state: State::Coming(transfer.clone()) });
        }
        Ok(Found::Absent(Reading { first: slot, frames, store, transfer }))
    }

    /// Takes note that a page has arrived, or did not, if its transfer has ended.
    fn settle_arrival(&mut self, environment: &E, slot: Slot) {
        let Some(disk) = self.disk(slot) else { return };
        let is_owned = disk.owners(environment, slot.page) > 0;
        let Some(cached) = disk.cached.get_mut(&slot.page) else { return };
        let State::Coming(transfer) = &cached.state else { return };
        let Some(outcome) = transfer.outcome() else { return };
        if is_owned && outcome.is_ok() {
            cached.state = State::Here { was_idle: false };
            let frame = cached.frame.number();
            self.note_frame(frame, slot);
        } else {
            disk.cached.remove(&slot.page);
        }
    }
}
