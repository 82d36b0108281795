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
//!
//! How many owners a slot has is said where there is room for it (`slot_owners`). If there is none for one slot more, the page stays in memory, as on a full disk.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use lock_api::{Mutex, RawMutex};

use crate::environment::Environment;
use crate::frame::{FrameNumber, FrameRef};
use crate::mistake::{Mistake, is_made};
use crate::range::PAGE_SIZE;
use crate::store::Store;
use crate::swap_disk::{Cached, State, SwapDisk};

/// Disks that can be swapped to at the same time: as many as on Linux.
pub const MOST_SWAP_DISKS: usize = 22;
/// Bits of an address that reach all slots that an entry can name.
const MOST_ADDRESS_BITS: u32 = 44;

/// Which slot: the number of its disk, and its page there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) disk: u8,
    pub(crate) page: u32,
}

/// Why a disk was not taken for swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapRefused {
    /// There are as many as there may be.
    TooMany,
    /// It has no slot that can be used.
    Empty,
    /// There is no memory to say which slots cannot be used.
    OutOfMemory,
}

/// All of it, under one lock.
pub(crate) struct Slots<E: Environment> {
    disks: [Option<SwapDisk<E>>; MOST_SWAP_DISKS],
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
        let slots = Slots { disks: [const { None }; MOST_SWAP_DISKS], by_frame: BTreeMap::new(), times: 0 };
        Self {
            slots: Mutex::const_new(E::TableLock::INIT, slots),
            came: AtomicU64::new(0),
            went: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            turns: AtomicUsize::new(0),
        }
    }

    /// A disk may have so many pages where CPUs know addresses of so many bits. Some CPUs read what their caches have of the address in an entry before
    /// they find that it is not present (L1TF). Up to this number the address that a slot's entry has there is above all frames.
    pub fn most_pages(environment: &E, address_bits: u32) -> u32 {
        most_pages(environment.frames().limit.load(Relaxed) as u64, address_bits)
    }

    /// Takes a store of `pages` pages for swap, all but its first, which is its header, and the `bad` ones. Without a priority it is used after those that are
    /// there. Its number.
    ///
    /// # Errors
    /// As [`SwapRefused`] says.
    pub fn add(
        &self,
        environment: &E,
        store: Arc<dyn Store<E>>,
        pages: u32,
        bad: &[u32],
        priority: Option<i32>,
    ) -> Result<usize, SwapRefused> {
        let mut disk = SwapDisk::new(environment, store, pages, bad)?;
        let mut slots = self.slots.lock();
        let Some(number) = slots.disks.iter().position(Option::is_none) else {
            drop(slots);
            disk.release(environment);
            return Err(SwapRefused::TooMany);
        };
        let lowest = slots.disks.iter().flatten().map(|disk| disk.priority).min().unwrap_or(0).min(-1);
        disk.priority = priority.unwrap_or(lowest - 1);
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
    pub fn remove(&self, environment: &E, number: usize) -> bool {
        let mut slots = self.slots.lock();
        if !slots.disks[number].as_ref().is_none_or(SwapDisk::is_empty) {
            return false;
        }
        let gone = slots.disks[number].take();
        drop(slots);
        if let Some(disk) = gone {
            disk.release(environment);
        }
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

    /// A page's entry is about to become that of a slot: which one, and a number if it must be written there. `None` if all are taken, or
    /// there is no memory to say that one is. Under the lock of the entry's table.
    pub(crate) fn enter(&self, environment: &E, frame: FrameNumber) -> Option<(Slot, Option<u64>)> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_frame.get(&frame).copied() {
            slots.disk(slot)?.count(environment, slot.page);
            return Some((slot, None));
        }
        let slot = slots.take_free(environment)?;
        slots.times += 1;
        let time = slots.times;
        let cached = Cached { frame: FrameRef::of(environment, frame), state: State::New(time) };
        slots.by_frame.insert(frame, slot);
        slots.disk(slot)?.cached.insert(slot.page, cached);
        Some((slot, Some(time)))
    }

    /// One owner more, who copies an entry under its table's lock.
    pub(crate) fn share(&self, environment: &E, slot: Slot) {
        if is_made(Mistake::SwapEntryNotCounted) {
            return;
        }
        if let Some(disk) = self.slots.lock().disk(slot) {
            disk.count(environment, slot.page);
        }
    }

    /// One owner less, whose entry was taken out under its table's lock.
    pub(crate) fn give_up(&self, environment: &E, slot: Slot) {
        if is_made(Mistake::SwapEntryTakenForEmpty) {
            return;
        }
        self.slots.lock().give_up(environment, slot);
    }

    /// The page of a slot for an owner who gives up the slot for it, under its entry's table lock. `None` if it is not in memory.
    pub(crate) fn claim(&self, environment: &E, slot: Slot) -> Option<FrameRef<E>> {
        let mut slots = self.slots.lock();
        let cached = slots.disk(slot)?.cached.get(&slot.page)?;
        if matches!(cached.state, State::Coming(_)) {
            return None;
        }
        let frame = cached.frame.clone();
        slots.give_up(environment, slot);
        Some(frame)
    }

    /// Whether a slot's page is in memory, too.
    pub(crate) fn is_cached(&self, slot: Slot) -> bool {
        let mut slots = self.slots.lock();
        let cached = slots.disk(slot).and_then(|disk| disk.cached.get(&slot.page));
        cached.is_some_and(|cached| !matches!(cached.state, State::Coming(_)))
    }
}

/// See [`Swap::most_pages`].
pub(crate) fn most_pages(frames: u64, address_bits: u32) -> u32 {
    let addresses = 1u64 << address_bits.min(MOST_ADDRESS_BITS);
    (addresses / PAGE_SIZE).saturating_sub(frames.max(1)) as u32
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
        let is_there: [bool; MOST_SWAP_DISKS] = core::array::from_fn(|number| self.disks[number].is_some());
        (0..).zip(is_there).filter_map(|(number, is_there)| is_there.then_some(number))
    }

    /// A slot that nothing is in nor is carried to or from, with one owner: of the disk with the highest priority that has one.
    fn take_free(&mut self, environment: &E) -> Option<Slot> {
        let mut tried = None;
        loop {
            let disks =
                self.disks.iter().enumerate().filter_map(|(number, disk)| Some((number, disk.as_ref()?)));
            let usable = disks.filter(|(_, disk)| disk.is_open && disk.free > 0);
            let ranks = usable.map(|(number, disk)| (Reverse(disk.priority), number));
            let rank = ranks.filter(|rank| tried.is_none_or(|tried| *rank > tried)).min()?;
            if let Some(page) = self.disks[rank.1].as_mut()?.take_free(environment) {
                return Some(Slot { disk: rank.1 as u8, page });
            }
            tried = Some(rank);
        }
    }

    fn give_up(&mut self, environment: &E, slot: Slot) {
        let Some(disk) = self.disk(slot) else { return };
        if disk.give_up(environment, slot.page) > 0 {
            return;
        }
        if let Some(cached) = disk.cached.get(&slot.page) {
            let frame = cached.frame.number();
            match &cached.state {
                State::Leaving | State::Coming(_) => {}
                State::New(_) | State::Here { .. } => drop(disk.cached.remove(&slot.page)),
                State::Stuck => disk.spoil(environment, slot.page),
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
