//! The page cache: objects whose pages come from a store.
//!
//! An object with a store differs from one without in where a page comes from that is not in memory. The rest is the same code: `object`
//! keeps the pages, `mappings` knows who maps them, `clean` takes dirty ones as clean, `reclaim` takes mapped ones back.
//!
//! **Bringing in.** Missing pages get frames, and those are noted as *arriving* together with their transfer, under the object's lock; the transfer
//! begins behind it. Whoever looks for such a page finds the transfer and sleeps until it has ended; whoever looks after that moves the
//! page to the others, or forgets it if the transfer failed, and says so (once: the next asks the store again). A
//! fault that finds no page lets go of its area lock before it sleeps, and looks at everything anew.
//!
//! **Reading ahead.** A miss whose predecessor is here is taken for one of a sequence: as many pages come as one transfer carries.
//!
//! **Writing.** By a call: the bytes are stored and the page is marked as dirty in one step under the object's lock, in which `clean` takes the
//! marks, so a page counts as clean only when everything that was stored before is in what is written out. By a mapping: hardware marks the
//! entry, and a clean page's entries do not allow stores (`clean`).
//!
//! **Writing back.** One at a time for each object: two transfers of one page could end in the wrong order. The frames are lent
//! to the store, which is a reference, so none of these pages is taken back (and read again, too early) meanwhile. What could not be written
//! counts as written, as on Linux: who asks is told, once (`failures`).
//!
//! **Taking back.** First pages that nobody maps, which costs nobody anything: the object's own reference is the only one, and
//! entries hold theirs until their flush is over. Then mapped ones, many to a flush (`reclaim`). Two hands go round the object's pages.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lock_api::RwLock;

use crate::backing::{BackingError, Identity};
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::object::{Contents, MemoryObject, split};
use crate::range::PAGE_SIZE;
use crate::store::{Direction, Store, Transfer};

const PAGE: usize = PAGE_SIZE as usize;
/// Mapped pages that one flush takes back, at most; and pages that one flush takes as clean.
const PAGES_TO_A_FLUSH: usize = 512;

/// What an object with a store has beside its pages.
pub(crate) struct Stored<E: Environment> {
    store: Arc<dyn Store<E>>,
    /// Held exclusively while pages are written back.
    writing_back: RwLock<E::AreaLock, ()>,
    /// How often writing back failed.
    failures: AtomicU64,
    /// Where to go on with taking back pages that nobody maps, and mapped ones.
    idle_hand: AtomicU64,
    mapped_hand: AtomicU64,
}

/// A page on its way into memory.
struct Arrival<E: Environment> {
    frame: FrameRef<E>,
    transfer: Arc<Transfer>,
}

/// Pages on their way, by their number.
pub(crate) struct Arrivals<E: Environment>(BTreeMap<u64, Arrival<E>>);

/// What a look for a page finds.
enum Found<E: Environment> {
    Here(FrameRef<E>),
    OnTheWay(Arc<Transfer>),
    /// It was on its way and did not come.
    Failed,
    Absent,
}

impl<E: Environment> Arrivals<E> {
    pub(crate) fn none() -> Self {
        Self(BTreeMap::new())
    }
}

impl<E: Environment> Contents<E> {
    fn find(&mut self, page: u64) -> Found<E> {
        if let Some(frame) = self.pages.get(&page) {
            return Found::Here(frame.clone());
        }
        let Some(arrival) = self.arriving.0.get(&page) else { return Found::Absent };
        let Some(outcome) = arrival.transfer.outcome() else {
            return Found::OnTheWay(arrival.transfer.clone());
        };
        let arrived = self.arriving.0.remove(&page);
        match (arrived, outcome) {
            (Some(Arrival { frame, .. }), Ok(())) => {
                self.pages.insert(page, frame.clone());
                Found::Here(frame)
            }
            _ => Found::Failed,
        }
    }

    fn has_or_awaits(&self, page: u64) -> bool {
        self.pages.contains_key(&page) || self.arriving.0.contains_key(&page)
    }

    /// The frame of a page, if it is in memory.
    pub(crate) fn stored_page(&mut self, page: u64) -> Result<FrameRef<E>, BackingError> {
        match self.find(page) {
            Found::Here(frame) => Ok(frame),
            Found::Failed => Err(BackingError::Failed),
            Found::OnTheWay(_) | Found::Absent => Err(BackingError::NotYet),
        }
    }

    /// A frame for a page; what lies behind the object's end is zero.
    fn fresh_frame(&self, environment: &E, page: u64) -> Result<FrameRef<E>, BackingError> {
        let frame = FrameRef::allocate(environment).map_err(|_| BackingError::OutOfMemory)?;
        // The mark may be left from the frame's last owner.
        environment.frames().take_dirty(frame.number());
        let used = (self.size - page * PAGE_SIZE).min(PAGE_SIZE) as usize;
        frame.clear(used, PAGE - used);
        Ok(frame)
    }

    /// Notes pages from `first` on as arriving, up to the first that is here and `most` at most; their frames.
    fn expect(
        &mut self,
        environment: &E,
        first: u64,
        most: u64,
        transfer: &Arc<Transfer>,
    ) -> Result<Vec<FrameRef<E>>, BackingError> {
        let end = self.size.div_ceil(PAGE_SIZE).min(first + most);
        let mut frames = Vec::new();
        for page in first..end {
            if self.has_or_awaits(page) {
                break;
            }
            let frame = match self.fresh_frame(environment, page) {
                Ok(frame) => frame,
                Err(error) if frames.is_empty() => return Err(error),
                // Who reads ahead does not press.
                Err(_) => break,
            };
            frames.push(frame.clone());
            self.arriving.0.insert(page, Arrival { frame, transfer: transfer.clone() });
        }
        Ok(frames)
    }
}

impl<E: Environment> MemoryObject<E> {
    /// An object of `size` bytes, all of them in a store as yet.
    pub fn with_store(
        environment: &E,
        identity: Identity,
        name: String,
        size: u64,
        store: Arc<dyn Store<E>>,
    ) -> Self {
        let stored = Stored {
            store,
            writing_back: RwLock::new(()),
            failures: AtomicU64::new(0),
            idle_hand: AtomicU64::new(0),
            mapped_hand: AtomicU64::new(0),
        };
        Self::with_contents(environment, identity, name, &[], size, Some(stored))
    }

    /// Brings a page in, and those behind it that are likely to be wanted next. Sleeps until it is here. It may be gone again when the
    /// caller looks.
    ///
    /// # Errors
    /// When it lies behind the end, there is no frame for it, or the store fails.
    pub fn bring_in(&self, page: u64) -> Result<(), BackingError> {
        self.bring_in_run(page, 1)
    }

    /// As [`MemoryObject::bring_in`], for a caller that wants so many pages from `page` on.
    fn bring_in_run(&self, page: u64, wanted: u64) -> Result<(), BackingError> {
        let Some(stored) = &self.stored else { return Ok(()) };
        loop {
            let mut contents = self.contents.lock();
            if page >= contents.size.div_ceil(PAGE_SIZE) {
                return Err(BackingError::PastEnd);
            }
            let transfer = match contents.find(page) {
                Found::Here(_) => return Ok(()),
                Found::Failed => return Err(BackingError::Failed),
                Found::OnTheWay(transfer) => {
                    drop(contents);
                    transfer
                }
                Found::Absent => {
                    let transfer = Transfer::pending();
                    let most = stored.store.most_pages();
                    let is_next = page.checked_sub(1).is_none_or(|before| contents.has_or_awaits(before));
                    let wanted = if is_next { most } else { wanted.min(most) };
                    let frames = contents.expect(self.environment(), page, wanted, &transfer)?;
                    drop(contents);
                    stored.store.begin(Direction::In, page, frames, &transfer);
                    transfer
                }
            };
            // How it ended is found by the next look.
            let _ = stored.store.wait(&transfer);
        }
    }

    /// Copies bytes out, up to the object's end; says how many. May sleep.
    ///
    /// # Errors
    /// When not even the first page could be had. A failure later shows as a short count.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, BackingError> {
        self.carry(offset, bytes.len(), pages_of, |at, part| {
            let (page, start) = split(at);
            let frame = self.contents.lock().stored_page(page)?;
            frame.read(start, &mut bytes[part]);
            Ok(())
        })
    }

    /// Copies bytes in, up to the object's end; says how many. May sleep. They are in the store after [`MemoryObject::write_back`].
    ///
    /// # Errors
    /// When not even the first page could be had. A failure later shows as a short count.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize, BackingError> {
        // Of the pages behind the first, those that are written as a whole need not come.
        self.carry(offset, bytes.len(), |_| 1, |at, part| self.write_piece(at, &bytes[part]))
    }

    /// Has `step` carry bytes from `offset` on, page by page up to the object's end: it is told where, and which of the caller's bytes. A page
    /// that is not here yet is brought in, with as many as `wanted` makes of the bytes from its start on. Says how many bytes were carried.
    fn carry(
        &self,
        offset: u64,
        length: usize,
        wanted: impl Fn(usize) -> u64,
        mut step: impl FnMut(u64, Range<usize>) -> Result<(), BackingError>,
    ) -> Result<usize, BackingError> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let part = done..done + self.piece(at, length - done);
            if part.is_empty() {
                break;
            }
            let (page, start) = split(at);
            let outcome = match step(at, part.clone()) {
                Err(BackingError::NotYet) => {
                    self.bring_in_run(page, wanted(start + length - done)).map(|()| done)
                }
                outcome => outcome.map(|()| part.end),
            };
            match outcome {
                Ok(reached) => done = reached,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes into one page, which need not be brought in if all of it is written.
    fn write_piece(&self, offset: u64, bytes: &[u8]) -> Result<(), BackingError> {
        let (page, start) = split(offset);
        let mut contents = self.contents.lock();
        let frame = match contents.find(page) {
            Found::Here(frame) => frame,
            Found::Failed => return Err(BackingError::Failed),
            Found::Absent
                if start == 0 && (bytes.len() == PAGE || offset + bytes.len() as u64 == contents.size) =>
            {
                let frame = contents.fresh_frame(self.environment(), page)?;
                contents.pages.insert(page, frame.clone());
                frame
            }
            Found::OnTheWay(_) | Found::Absent => return Err(BackingError::NotYet),
        };
        // Both under the lock in which marks are taken (`take_dirty`): a mark that is taken stands for bytes that are there.
        self.environment().frames().note_dirty(frame.number());
        frame.write(start, bytes);
        Ok(())
    }

    /// How much of a transfer of `length` bytes at `offset` lies in the same page, and in the object.
    fn piece(&self, offset: u64, length: usize) -> usize {
        let in_page = PAGE_SIZE - offset % PAGE_SIZE;
        in_page.min(self.size().saturating_sub(offset)).min(length as u64) as usize
    }

    /// Writes those of these pages to the store that were stored to, and waits for it; then what was written there is made lasting. What is
    /// stored meanwhile may be written or not. Failures are told by [`MemoryObject::failures`].
    pub fn write_back(&self, pages: Range<u64>) {
        let Some(stored) = &self.stored else { return };
        let _turn = stored.writing_back.write();
        let mut transfers = Vec::new();
        let mut next = pages.start;
        while let Some(part) = self.resident_part(next, pages.end, PAGES_TO_A_FLUSH) {
            next = part.end;
            let mut run = Run { first: 0, frames: Vec::new() };
            self.clean(part, |page, frame| {
                let is_next = page == run.first + run.frames.len() as u64;
                if !is_next || run.frames.len() as u64 == stored.store.most_pages() {
                    transfers.extend(run.send(&stored.store));
                    run.first = page;
                }
                run.frames.push(frame.clone());
            });
            transfers.extend(run.send(&stored.store));
        }
        if transfers.is_empty() {
            // What was written back before was made lasting then.
            return;
        }
        // All of them are waited for.
        let failed = transfers.iter().filter(|transfer| stored.store.wait(transfer).is_err()).count();
        if stored.store.make_lasting().is_err() || failed > 0 {
            stored.failures.fetch_add(1, Relaxed);
        }
    }

    /// How often writing back has failed. Who remembers an earlier count knows whether there is something to tell.
    pub fn failures(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.failures.load(Relaxed))
    }

    /// Whether its pages come from a store.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// The smallest range from `first` on, below `end`, that holds so many of the pages in memory, or all that there are.
    fn resident_part(&self, first: u64, end: u64, count: usize) -> Option<Range<u64>> {
        let contents = self.contents.lock();
        let mut resident = contents.pages.range(first..end).map(|(page, _)| *page).take(count);
        let start = resident.next()?;
        Some(start..resident.last().unwrap_or(start) + 1)
    }

    /// Takes back up to `count` clean pages, first those that nobody maps; says how many. May sleep.
    pub fn shrink(&self, count: usize) -> usize {
        let Some(stored) = &self.stored else { return 0 };
        let mut gone = self.shrink_idle(stored, count);
        let mut rounds = 0;
        while gone < count && rounds < 2 {
            let first = stored.mapped_hand.load(Relaxed);
            match self.resident_part(first, u64::MAX, PAGES_TO_A_FLUSH) {
                Some(part) => {
                    stored.mapped_hand.store(part.end, Relaxed);
                    gone += self.reclaim(part);
                }
                None => {
                    stored.mapped_hand.store(0, Relaxed);
                    rounds += 1;
                }
            }
        }
        gone
    }

    fn shrink_idle(&self, stored: &Stored<E>, count: usize) -> usize {
        let frames = self.environment().frames();
        let mut contents = self.contents.lock();
        let hand = stored.idle_hand.load(Relaxed);
        let is_idle =
            |frame: &FrameRef<E>| frames.references(frame.number()) == 1 && !frames.is_dirty(frame.number());
        let round = contents.pages.range(hand..).chain(contents.pages.range(..hand));
        let idle: Vec<u64> =
            round.filter(|(_, frame)| is_idle(frame)).map(|(page, _)| *page).take(count).collect();
        stored.idle_hand.store(idle.last().map_or(0, |last| last + 1), Relaxed);
        let gone: Vec<_> = idle.iter().filter_map(|page| contents.pages.remove(page)).collect();
        // Released behind the lock, as releasing takes other locks.
        drop(contents);
        gone.len()
    }
}

/// Neighbouring pages that are to be written.
struct Run<E: Environment> {
    first: u64,
    frames: Vec<FrameRef<E>>,
}

impl<E: Environment> Run<E> {
    fn send(&mut self, store: &Arc<dyn Store<E>>) -> Option<Arc<Transfer>> {
        let frames = core::mem::take(&mut self.frames);
        if frames.is_empty() {
            return None;
        }
        let transfer = Transfer::pending();
        store.begin(Direction::Out, self.first, frames, &transfer);
        Some(transfer)
    }
}

/// Pages that so many bytes from the start of one reach.
fn pages_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(PAGE_SIZE)
}
