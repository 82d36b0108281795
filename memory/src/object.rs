//! Memory as an object of its own: shared anonymous memory, files of an in-memory file system, memfd.
//!
//! Pages come to be on first use: as zeroes, or as a copy of the bytes the object started from (a file in the initial
//! archive, whose bytes lie at odd places and belong to nobody else). Reading such bytes with [`MemoryObject::read_at`]
//! needs no page at all.
//!
//! The pages and the size are under one spinning lock. A frame stays alive while anything refers to it: a mapping of a
//! page that [`MemoryObject::truncate`] cut off keeps it until `truncate.rs` has dropped the entry. `hole.rs` says how pages go from its middle. Who maps it is in a list of its
//! own (`mappings.rs`).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use lock_api::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};

use crate::backing::{Backing, BackingError, Identity};
use crate::environment::Environment;
use crate::error::{Error, OutOfMemory};
use crate::frame::{FrameNumber, FrameRef};
use crate::frames::Frames;
use crate::mappings::Mappings;
use crate::mistake::{Mistake, is_made};
use crate::range::PAGE_SIZE;
use crate::rights::Rights;
use crate::stored::{Arrivals, Stored};
use crate::sync::AtomicU64;

const PAGE: usize = PAGE_SIZE as usize;

/// An object made of memory.
pub struct MemoryObject<E: Environment> {
    environment: E,
    identity: Identity,
    name: String,
    mappings: Mappings<E>,
    /// How often it has been cut.
    cuts: AtomicU64,
    pub(crate) contents: Mutex<E::TableLock, Contents<E>>,
    /// Held by whoever punches holes, until nobody sees what was there.
    turn: RwLock<E::AreaLock, ()>,
    /// Of an object whose pages come from a store.
    pub(crate) stored: Option<Stored<E>>,
}

pub(crate) struct Contents<E: Environment> {
    pub(crate) size: u64,
    /// What pages that are not in `pages` start as; zeroes behind its end.
    original: &'static [u8],
    pub(crate) pages: BTreeMap<u64, FrameRef<E>>,
    /// Pages on their way out: CPUs may still hold what was there, so nobody may get anything else (`hole`). Empty but in somebody's turn.
    leaving: Range<u64>,
    /// Pages that are on their way from the store.
    pub(crate) arriving: Arrivals<E>,
}

type Locked<'a, E> = MutexGuard<'a, <E as Environment>::TableLock, Contents<E>>;

impl<E: Environment> MemoryObject<E> {
    /// An object of `size` zero bytes.
    pub fn new(environment: &E, identity: Identity, name: String, size: u64) -> Self {
        Self::with_contents(environment, identity, name, &[], size, None)
    }

    /// An object that starts as a copy of `original`; its pages are copied on first use.
    pub fn from_bytes(environment: &E, identity: Identity, name: String, original: &'static [u8]) -> Self {
        Self::with_contents(environment, identity, name, original, original.len() as u64, None)
    }

    pub(crate) fn with_contents(
        environment: &E,
        identity: Identity,
        name: String,
        original: &'static [u8],
        size: u64,
        stored: Option<Stored<E>>,
    ) -> Self {
        let contents =
            Contents { size, original, pages: BTreeMap::new(), leaving: 0..0, arriving: Arrivals::none() };
        let (mappings, contents) = (Mappings::new(), Mutex::new(contents));
        let cuts = AtomicU64::new(0);
        let turn = RwLock::new(());
        Self { environment: environment.clone(), identity, name, mappings, cuts, contents, turn, stored }
    }

    /// How many areas show it.
    pub fn areas(&self) -> usize {
        self.mappings.count()
    }

    /// Whether some area shows it shared, and stores through it are allowed or could be. Nobody may hold the area lock of a space that does.
    pub fn may_be_stored_to(&self) -> bool {
        self.mappings.places().into_iter().any(|(space, range)| {
            let layout = space.shared();
            layout.areas.overlapping(range).any(|area| area.is_shared() && area.may.contains(Rights::WRITE))
        })
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.contents.lock().size
    }

    pub(crate) fn environment(&self) -> &E {
        &self.environment
    }

    /// How often pages were cut off. A fault asks before it gets a page, and again under the lock of the table that it is to be
    /// entered in. Relaxed: that lock orders it against whoever looks there for pages that were cut off.
    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Relaxed)
    }

    /// The contents, as soon as none of these pages is on its way out. May sleep.
    fn settled(&self, pages: Range<u64>) -> Locked<'_, E> {
        loop {
            let contents = self.contents.lock();
            let leaves = contents.leaving.start < pages.end && pages.start < contents.leaving.end;
            if !leaves || is_made(Mistake::HoleNotWaitedFor) {
                return contents;
            }
            drop(contents);
            // It is over when its turn is.
            drop(self.turn.read());
        }
    }

    /// Waits for one's turn to punch holes, which lasts until this is dropped.
    pub(crate) fn turn(&self) -> RwLockWriteGuard<'_, E::AreaLock, ()> {
        self.turn.write()
    }

    /// Lets go of pages, and has everybody wait who wants one of them until [`MemoryObject::settle`]. In its caller's turn.
    ///
    /// # Errors
    /// When there is no memory for what is to be in place of bytes that the object started with.
    pub(crate) fn give_up(&self, pages: Range<u64>) -> Result<BTreeMap<u64, FrameRef<E>>, OutOfMemory> {
        let originals = || {
            let end = (self.contents.lock().original.len() as u64).div_ceil(PAGE_SIZE);
            pages.start..pages.end.min(end)
        };
        let zeroes: Vec<(u64, FrameRef<E>)> = originals()
            .map(|page| Ok((page, FrameRef::zeroed(&self.environment)?)))
            .collect::<Result<_, OutOfMemory>>()?;
        let mut contents = self.contents.lock();
        let mut behind = contents.pages.split_off(&pages.start);
        let mut kept = behind.split_off(&pages.end.max(pages.start));
        contents.pages.append(&mut kept);
        for (page, frame) in zeroes {
            if page * PAGE_SIZE < contents.original.len() as u64 {
                // Else it could be made again as it was.
                self.environment.frames().note_dirty(frame.number());
                contents.pages.insert(page, frame);
            }
        }
        let is_first = contents.leaving.is_empty();
        let (start, end) = (contents.leaving.start, contents.leaving.end);
        contents.leaving = if is_first { pages } else { start.min(pages.start)..end.max(pages.end) };
        self.cuts.fetch_add(1, Relaxed);
        Ok(behind)
    }

    /// What was given up is seen by nobody any more. In its caller's turn.
    pub(crate) fn settle(&self) {
        self.contents.lock().leaving = 0..0;
    }

    /// Makes these pages, where they are not there; behind the end too.
    ///
    /// # Errors
    /// When one could not be had. Those before it stay.
    pub fn allocate(&self, pages: Range<u64>) -> Result<(), OutOfMemory> {
        for page in pages {
            self.settled(page..page + 1).page(&self.environment, page)?;
            self.environment.yield_if_needed();
        }
        Ok(())
    }

    /// How many of these pages are in memory.
    pub fn resident_pages_in(&self, pages: Range<u64>) -> u64 {
        self.contents.lock().pages.range(pages).count() as u64
    }

    /// The pages of a range that are in memory, with their marks of being dirty, which are taken. A call that stores into a page marks it under the same lock: when a
    /// mark is taken, what it stands for is in the page.
    pub(crate) fn take_dirty(&self, pages: Range<u64>) -> Vec<(u64, FrameRef<E>, bool)> {
        let contents = self.contents.lock();
        let take = |(page, frame): (&u64, &FrameRef<E>)| {
            (*page, frame.clone(), self.environment.frames().take_dirty(frame.number()))
        };
        contents.pages.range(pages).map(take).collect()
    }

    /// The pages of a range that are in memory.
    pub(crate) fn resident(&self, pages: Range<u64>) -> Vec<(u64, FrameRef<E>)> {
        let contents = self.contents.lock();
        contents.pages.range(pages).map(|(page, frame)| (*page, frame.clone())).collect()
    }

    /// Those of them that nobody has stored to, as far as is known, and that can be made again.
    pub(crate) fn reproducible(&self, pages: Range<u64>) -> Vec<(u64, FrameRef<E>)> {
        let contents = self.contents.lock();
        let end = if self.is_stored() { contents.size } else { contents.original.len() as u64 };
        let known = pages.start..pages.end.min(end.div_ceil(PAGE_SIZE));
        let is_clean = |frame: &FrameRef<E>| !self.environment.frames().is_dirty(frame.number());
        let resident = contents.pages.range(known.start..known.end.max(known.start));
        resident.filter(|(_, frame)| is_clean(frame)).map(|(page, frame)| (*page, frame.clone())).collect()
    }

    /// Lets go of pages that nobody maps, has stored to, or has come for; says of how many. The caller has flushed. `forget` hears of each that
    /// goes; others that were being looked at go back to their list.
    pub(crate) fn give_back(
        &self,
        candidates: Vec<(u64, FrameRef<E>)>,
        forget: impl Fn(&Frames<E::TableLock>, FrameNumber),
    ) -> usize {
        let frames = self.environment.frames();
        let mut contents = self.contents.lock();
        candidates.iter().for_each(|(page, _)| contents.settle_arrival(*page));
        let before = contents.pages.len();
        for (page, frame) in &candidates {
            // One reference is the object's and one the candidate's.
            let is_idle = frames.references(frame.number()) == 2 && !frames.is_dirty(frame.number());
            if is_idle && contents.pages.get(page).is_some_and(|kept| kept.number() == frame.number()) {
                forget(frames, frame.number());
                contents.pages.remove(page);
            } else {
                frames.judge(frame.number(), false);
            }
        }
        let gone = before - contents.pages.len();
        drop(contents);
        drop(candidates);
        gone
    }

    /// Whether a page holds something: one that is in memory, or one that the object started with.
    pub(crate) fn has_page(&self, page: u64) -> bool {
        let contents = self.contents.lock();
        contents.has_page(page)
    }

    /// Takes a frame as the page where it has none.
    pub(crate) fn provide(&self, page: u64, frame: &FrameRef<E>) -> Result<(), Error> {
        let mut contents = self.settled(page..page + 1);
        if page >= contents.size.div_ceil(PAGE_SIZE) {
            return Err(Error::NotMapped);
        }
        if contents.has_page(page) {
            return Err(Error::Exists);
        }
        self.environment.frames().note_dirty(frame.number());
        contents.pages.insert(page, frame.clone());
        Ok(())
    }

    /// Who maps it.
    pub(crate) fn mappings(&self) -> &Mappings<E> {
        &self.mappings
    }

    /// How many pages the object holds in memory.
    pub fn resident_pages(&self) -> usize {
        self.contents.lock().pages.len()
    }

    /// The first page at or behind `page` that may hold other bytes than zeroes.
    pub fn next_page(&self, page: u64) -> Option<u64> {
        let contents = self.contents.lock();
        if page < (contents.original.len() as u64).div_ceil(PAGE_SIZE) {
            return Some(page);
        }
        contents.pages.range(page..).next().map(|(&page, _)| page)
    }

    /// Copies bytes out (having waited for holes that are being punched there), up to the object's end; says how many.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let contents = self.settled(pages_of(offset, bytes.len()));
        let available = contents.size.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut done = 0;
        while done < available {
            let (page, start) = split(offset + done as u64);
            let length = (PAGE - start).min(available - done);
            let target = &mut bytes[done..done + length];
            match contents.pages.get(&page) {
                Some(frame) => frame.read(start, target),
                None => contents.read_original(offset + done as u64, target),
            }
            done += length;
        }
        available
    }

    /// Copies bytes in, and lets the object grow to hold them; says how many.
    ///
    /// # Errors
    /// When not even the first page could be had. A shortage later shows as a short count.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<usize, OutOfMemory> {
        let mut contents = self.settled(pages_of(offset, bytes.len()));
        let mut done = 0;
        while done < bytes.len() {
            let (page, start) = split(offset + done as u64);
            let length = (PAGE - start).min(bytes.len() - done);
            let frame = match contents.page(&self.environment, page) {
                Ok(frame) => frame,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            self.environment.frames().note_dirty(frame.number());
            frame.write(start, &bytes[done..done + length]);
            done += length;
        }
        contents.size = contents.size.max(offset + done as u64);
        Ok(done)
    }

    /// Sets the length. What a shorter object loses reads as zeroes should it grow again. Mappings still show what is cut off until
    /// [`MemoryObject::forget_mapped`] is called.
    pub fn truncate(&self, size: u64) {
        let mut contents = self.contents.lock();
        // The frames are released behind the lock: a mapping may hold others, and releasing takes other locks.
        let lost = contents.pages.split_off(&size.div_ceil(PAGE_SIZE));
        if size < contents.size {
            let kept = (size as usize).min(contents.original.len());
            contents.original = &contents.original[..kept];
            let (page, tail) = split(size);
            if let Some(frame) = contents.pages.get(&page) {
                self.environment.frames().note_dirty(frame.number());
                frame.clear(tail, PAGE - tail);
            }
            self.cuts.fetch_add(1, Relaxed);
        }
        contents.size = size;
        drop(contents);
        drop(lost);
    }
}

impl<E: Environment> Drop for MemoryObject<E> {
    fn drop(&mut self) {
        if self.is_stored() {
            self.contents.get_mut().unlist_all();
        }
    }
}

impl<E: Environment> Contents<E> {
    fn has_page(&self, page: u64) -> bool {
        page < (self.original.len() as u64).div_ceil(PAGE_SIZE) || self.pages.contains_key(&page)
    }

    /// The frame of a page, made now if it is not there.
    fn page(&mut self, environment: &E, page: u64) -> Result<&FrameRef<E>, OutOfMemory> {
        use alloc::collections::btree_map::Entry;
        let original = self.original;
        match self.pages.entry(page) {
            Entry::Occupied(occupied) => Ok(occupied.into_mut()),
            Entry::Vacant(vacant) => {
                let bytes = original_part(original, page * PAGE_SIZE, PAGE);
                let frame = FrameRef::allocate(environment)?;
                // The mark may be left from the frame's last owner.
                environment.frames().take_dirty(frame.number());
                frame.write(0, bytes);
                frame.clear(bytes.len(), PAGE - bytes.len());
                Ok(vacant.insert(frame))
            }
        }
    }

    fn read_original(&self, offset: u64, target: &mut [u8]) {
        let bytes = original_part(self.original, offset, target.len());
        target[..bytes.len()].copy_from_slice(bytes);
        target[bytes.len()..].fill(0);
    }
}

/// The part of `original` at `offset`, as much as there is of `length` bytes.
fn original_part(original: &[u8], offset: u64, length: usize) -> &[u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(original.len());
    &original[start..start + length.min(original.len() - start)]
}

/// The pages in which so many bytes lie.
fn pages_of(offset: u64, length: usize) -> Range<u64> {
    offset / PAGE_SIZE..offset.saturating_add(length as u64).div_ceil(PAGE_SIZE)
}

/// Page index and offset inside the page.
pub(crate) fn split(offset: u64) -> (u64, usize) {
    (offset / PAGE_SIZE, (offset % PAGE_SIZE) as usize)
}

impl<E: Environment> Backing<E> for MemoryObject<E> {
    fn frame(&self, page: u64) -> Result<FrameRef<E>, BackingError> {
        let mut contents = self.settled(page..page.saturating_add(1));
        if page >= contents.size.div_ceil(PAGE_SIZE) {
            return Err(BackingError::PastEnd);
        }
        if self.is_stored() {
            return contents.stored_page(page);
        }
        contents.page(&self.environment, page).cloned().map_err(|_| BackingError::OutOfMemory)
    }

    fn object(&self) -> Option<&MemoryObject<E>> {
        Some(self)
    }

    fn is_resident(&self, page: u64) -> bool {
        self.contents.lock().pages.contains_key(&page)
    }

    fn size(&self) -> u64 {
        MemoryObject::size(self)
    }

    fn identity(&self) -> Identity {
        self.identity
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
