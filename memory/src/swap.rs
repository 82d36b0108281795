//! Swap: slots on disks for private pages that memory has no room for.
//!
//! A slot holds one page. Entries that say "this page is in that slot" (`entry`) are its *owners*, and are counted as entries that map a frame
//! count as references to it: whoever copies one counts, whoever takes one out gives up, both under the lock of the entry's table.
//!
//! **The cache.** While a page is carried, or has been brought in for one owner of several, its frame is *cached* under its slot. An owner's fault takes
//! it from there (`claim`); nobody maps a swapped page but by claiming it. One lock orders all of it, behind the tables' locks.
//!
//! ```text
//!   enter -> New --flush over--> Leaving --written--> Here --nobody maps it--> (on the disk alone) --fault--> Coming --read--> Here
//! ```
//!
//! * **A page in the cache stands still.** When the first of its entries is taken out it gets the cache's reference, under that entry's table lock, so from then
//!   on nobody is its only owner, and nobody makes an entry of it writable. What may still be stored through a CPU's cached translation lands before the
//!   flush that the state *New* waits for (`swap_out`). So the slot's bytes count for all its owners, and one who comes by is given the same slot.
//! * **The last owner takes the page with him**: the slot no longer says what is in it. If it is being carried then, it stays cached without an
//!   owner until that is over.
//! * **A slot is given out** when it has no owner and is not cached. Else two transfers of different pages could end in the wrong order, or
//!   somebody who waits for the old page could get the new one.
//! * What could not be written stays in memory, cached, as long as it has an owner, and its slot is not used again.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use lock_api::{Mutex, RawMutex};

use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::{FrameNumber, FrameRef};
use crate::mistake::{Mistake, is_made};
use crate::store::{Store, Transfer};

/// Disks that can be swapped to at the same time.
const MOST_DISKS: usize = 16;
/// In place of a slot's owners: it is not to be used.
const BAD: u32 = u32::MAX;

/// Which slot: the number of its disk, and its page there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) disk: u8,
    pub(crate) page: u32,
}

/// What a cached page waits for.
pub(crate) enum State {
    /// The flush of whoever entered it, and then being written. The number tells this time from others.
    New(u64),
    Leaving,
    Coming(Arc<Transfer>),
    /// Nothing: frame and slot hold the same.
    Here {
        /// Nobody had mapped it when it was last looked at.
        was_idle: bool,
    },
    /// Nothing any more: it could not be written.
    Stuck,
}

pub(crate) struct Cached<E: Environment> {
    pub(crate) frame: FrameRef<E>,
    pub(crate) state: State,
}

impl<E: Environment> Cached<E> {
    /// Whether nothing but the cache refers to the page.
    pub(crate) fn is_alone(&self) -> bool {
        self.frame.is_alone()
    }
}

/// A disk that is swapped to.
pub(crate) struct SwapDisk<E: Environment> {
    pub(crate) store: Arc<dyn Store<E>>,
    priority: i32,
    /// Slots are given out.
    is_open: bool,
    owners: Vec<u32>,
    /// Slots that may be used, and those of them without an owner.
    usable: u32,
    free: u32,
    /// Where the next look for a free slot begins.
    next: u32,
    pub(crate) cached: BTreeMap<u32, Cached<E>>,
}

/// All of it, under one lock.
pub(crate) struct Slots<E: Environment> {
    disks: [Option<SwapDisk<E>>; MOST_DISKS],
    /// Cached pages whose slots say what is in them.
    by_frame: BTreeMap<FrameNumber, Slot>,
    times: u64,
}

/// Swap of one machine.
pub struct Swap<E: Environment> {
    pub(crate) slots: Mutex<E::TableLock, Slots<E>>,
    pub(crate) came: AtomicU64,
    pub(crate) went: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// How often somebody had to wait for a page.
    pub(crate) waits: AtomicU64,
    /// Whose turn it is to have its pages looked at.
    pub(crate) turns: AtomicUsize,
}

/// What swap is made of and what it did, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapCounts {
    /// Slots that pages may be in.
    pub total: u64,
    /// Those of them that are free.
    pub free: u64,
    /// Pages in memory that have a slot, too.
    pub cached: u64,
    /// Pages that were read.
    pub came: u64,
    /// Pages that were written.
    pub went: u64,
    /// Pages that could not be written.
    pub failed: u64,
    /// How often somebody had to wait for a page.
    pub waits: u64,
}

/// One disk that is swapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapDiskCounts {
    /// Its number.
    pub number: usize,
    /// Its slots, in use or not.
    pub total: u64,
    /// Slots in use.
    pub used: u64,
    /// The higher, the earlier it is used.
    pub priority: i32,
}

impl<E: Environment> Swap<E> {
    /// No disk yet.
    pub const fn new() -> Self {
        let slots = Slots { disks: [const { None }; MOST_DISKS], by_frame: BTreeMap::new(), times: 0 };
        Self {
            slots: Mutex::const_new(E::TableLock::INIT, slots),
            came: AtomicU64::new(0),
            went: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
        }
    }

    /// Takes a store of `pages` pages for swap, all but its first, which is its header, and the `bad` ones. Without a priority it is used after those that are
    /// there. Its number.
    ///
    /// # Errors
    /// When there are too many, or no memory for the counts.
    pub fn add(
        &self,
        store: Arc<dyn Store<E>>,
        pages: u32,
        bad: &[u32],
        priority: Option<i32>,
    ) -> Result<usize, OutOfMemory> {
        let mut owners = Vec::new();
        owners.try_reserve_exact(pages as usize).map_err(|_| OutOfMemory)?;
        owners.resize(pages as usize, 0);
        for page in bad.iter().chain(&[0]) {
            if let Some(owners) = owners.get_mut(*page as usize) {
                *owners = BAD;
            }
        }
        let usable = owners.iter().filter(|owners| **owners == 0).count() as u32;
        let mut slots = self.slots.lock();
        let lowest = slots.disks.iter().flatten().map(|disk| disk.priority).min().unwrap_or(0).min(-1);
        let priority = priority.unwrap_or(lowest - 1);
        let number = slots.disks.iter().position(Option::is_none).ok_or(OutOfMemory)?;
        let cached = BTreeMap::new();
        let disk = SwapDisk { store, priority, is_open: true, owners, usable, free: usable, next: 1, cached };
        slots.disks[number] = Some(disk);
        Ok(number)
    }

    /// Gives out no more slots of a disk, or does so again.
    pub fn set_open(&self, number: usize, is_open: bool) {
        if let Some(disk) = &mut self.slots.lock().disks[number] {
            disk.is_open = is_open;
        }
    }

    /// Forgets a disk if nothing is in it any more; says whether that is so.
    pub fn remove(&self, number: usize) -> bool {
        let mut slots = self.slots.lock();
        let is_empty = |disk: &SwapDisk<E>| disk.free == disk.usable && disk.cached.is_empty();
        if !slots.disks[number].as_ref().is_none_or(is_empty) {
            return false;
        }
        let gone = slots.disks[number].take();
        drop(slots);
        drop(gone);
        true
    }

    /// The disks, and how full they are.
    pub fn disks(&self) -> Vec<SwapDiskCounts> {
        let slots = self.slots.lock();
        let there = slots.disks.iter().enumerate();
        there
            .filter_map(|(number, disk)| {
                let disk = disk.as_ref()?;
                let (total, free) = (u64::from(disk.usable), u64::from(disk.free));
                Some(SwapDiskCounts { number, total, used: total - free, priority: disk.priority })
            })
            .collect()
    }

    /// What there is and what was done.
    pub fn counts(&self) -> SwapCounts {
        let slots = self.slots.lock();
        let disks = || slots.disks.iter().flatten();
        SwapCounts {
            total: disks().map(|disk| u64::from(disk.usable)).sum(),
            free: disks().filter(|disk| disk.is_open).map(|disk| u64::from(disk.free)).sum(),
            cached: disks().map(|disk| disk.cached.len() as u64).sum(),
            came: self.came.load(Relaxed),
            went: self.went.load(Relaxed),
            failed: self.failed.load(Relaxed),
            waits: self.waits.load(Relaxed),
        }
    }

    /// Whether a slot can be had.
    pub fn has_room(&self) -> bool {
        self.slots.lock().disks.iter().flatten().any(|disk| disk.is_open && disk.free > 0)
    }

    /// A page's entry is about to become that of a slot: which one, and a number if it must be written there. `None` if all are taken. Under the lock of the
    /// entry's table.
    pub(crate) fn enter(&self, environment: &E, frame: FrameNumber) -> Option<(Slot, Option<u64>)> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_frame.get(&frame).copied() {
            slots.disk(slot)?.count(slot);
            return Some((slot, None));
        }
        let slot = slots.take_free()?;
        slots.times += 1;
        let time = slots.times;
        let cached = Cached { frame: FrameRef::of(environment, frame), state: State::New(time) };
        slots.by_frame.insert(frame, slot);
        slots.disk(slot)?.cached.insert(slot.page, cached);
        Some((slot, Some(time)))
    }

    /// One owner more, who copies an entry under its table's lock.
    pub(crate) fn share(&self, slot: Slot) {
        if is_made(Mistake::SwapEntryNotCounted) {
            return;
        }
        if let Some(disk) = self.slots.lock().disk(slot) {
            disk.count(slot);
        }
    }

    /// One owner less, whose entry was taken out under its table's lock.
    pub(crate) fn give_up(&self, slot: Slot) {
        if is_made(Mistake::SwapEntryTakenForEmpty) {
            return;
        }
        self.slots.lock().give_up(slot);
    }

    /// The page of a slot for an owner who gives up the slot for it, under its entry's table lock. `None` if it is not in memory.
    pub(crate) fn claim(&self, slot: Slot) -> Option<FrameRef<E>> {
        let mut slots = self.slots.lock();
        let cached = slots.disk(slot)?.cached.get(&slot.page)?;
        if matches!(cached.state, State::Coming(_)) {
            return None;
        }
        let frame = cached.frame.clone();
        slots.give_up(slot);
        Some(frame)
    }

    /// Whether a slot's page is in memory, too.
    pub(crate) fn is_cached(&self, slot: Slot) -> bool {
        let mut slots = self.slots.lock();
        let cached = slots.disk(slot).and_then(|disk| disk.cached.get(&slot.page));
        cached.is_some_and(|cached| !matches!(cached.state, State::Coming(_)))
    }
}

impl<E: Environment> Default for Swap<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Environment> Slots<E> {
    /// The disk of a slot. Gone only when nothing owns its slots.
    pub(crate) fn disk(&mut self, slot: Slot) -> Option<&mut SwapDisk<E>> {
        self.disks.get_mut(usize::from(slot.disk))?.as_mut()
    }

    /// All disks.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> + use<E> {
        let is_there: [bool; MOST_DISKS] = core::array::from_fn(|number| self.disks[number].is_some());
        (0..).zip(is_there).filter_map(|(number, is_there)| is_there.then_some(number))
    }

    /// A slot that nothing is in nor is carried to or from, with one owner.
    fn take_free(&mut self) -> Option<Slot> {
        let mut numbers: Vec<usize> = (0..MOST_DISKS).collect();
        numbers
            .retain(|number| self.disks[*number].as_ref().is_some_and(|disk| disk.is_open && disk.free > 0));
        numbers.sort_by_key(|number| self.disks[*number].as_ref().map(|disk| -disk.priority));
        numbers.into_iter().find_map(|number| {
            let page = self.disks[number].as_mut()?.take_free()?;
            Some(Slot { disk: number as u8, page })
        })
    }

    fn give_up(&mut self, slot: Slot) {
        let Some(disk) = self.disk(slot) else { return };
        let owners = &mut disk.owners[slot.page as usize];
        debug_assert!((1..BAD).contains(owners), "a slot without an owner was given up");
        *owners -= 1;
        if *owners > 0 {
            return;
        }
        disk.free += 1;
        if let Some(cached) = disk.cached.get(&slot.page) {
            let frame = cached.frame.number();
            match &cached.state {
                State::Leaving | State::Coming(_) => {}
                State::New(_) | State::Here { .. } => drop(disk.cached.remove(&slot.page)),
                State::Stuck => disk.spoil(slot.page),
            }
            self.forget_frame(frame, slot);
        }
    }

    /// The slot no longer says what is in the frame.
    pub(crate) fn forget_frame(&mut self, frame: FrameNumber, slot: Slot) {
        if self.by_frame.get(&frame) == Some(&slot) {
            self.by_frame.remove(&frame);
        }
    }

    /// The slot says what is in the frame.
    pub(crate) fn note_frame(&mut self, frame: FrameNumber, slot: Slot) {
        self.by_frame.insert(frame, slot);
    }
}

impl<E: Environment> SwapDisk<E> {
    pub(crate) fn owners(&self, page: u32) -> u32 {
        self.owners.get(page as usize).copied().filter(|owners| *owners != BAD).unwrap_or(0)
    }

    fn count(&mut self, slot: Slot) {
        let owners = &mut self.owners[slot.page as usize];
        debug_assert!((1..BAD - 1).contains(owners), "a slot without an owner was copied");
        *owners += 1;
    }

    fn take_free(&mut self) -> Option<u32> {
        let length = self.owners.len() as u32;
        let ignores_carried = is_made(Mistake::SlotGivenOutWhileCarried);
        let page = (self.next..length).chain(1..self.next).find(|page| {
            self.owners[*page as usize] == 0 && (ignores_carried || !self.cached.contains_key(page))
        })?;
        self.owners[page as usize] = 1;
        self.free -= 1;
        self.next = page + 1;
        Some(page)
    }

    /// A slot without an owner is not to be used any more.
    pub(crate) fn spoil(&mut self, page: u32) {
        self.cached.remove(&page);
        self.owners[page as usize] = BAD;
        self.usable -= 1;
        self.free -= 1;
    }
}
