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
//! **Taking back.** Pages are listed from when they are noted as arriving (`page_lists`), and go in the order in which they were last used (`scan`). What
//! is in use is known from entries, and from calls, which say so here.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use lock_api::RwLock;

use crate::backing::{BackingError, Identity};
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::object::{Contents, MemoryObject, split};
use crate::page_lists::identity;
use crate::range::PAGE_SIZE;
use crate::reclaim::{Candidate, Seen};
use crate::store::{Direction, Store, Transfer};
use crate::trail::Trail;

const PAGE: usize = PAGE_SIZE as usize;
/// Pages that one flush takes as clean, or takes back.
const PAGES_TO_A_FLUSH: usize = 512;

/// What an object with a store has beside its pages.
pub(crate) struct Stored<E: Environment> {
    store: Arc<dyn Store<E>>,
    /// Held exclusively while pages are written back.
    writing_back: RwLock<E::AreaLock, ()>,
    /// How often writing back failed.
    failures: AtomicU64,
    /// Pages on their way out.
    leaving: AtomicUsize,
    /// Among the objects whose pages are listed.
    number: u32,
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
            (failed, _) => {
                failed.inspect(|arrival| arrival.frame.unlist());
                Found::Failed
            }
        }
    }

    /// Takes note that a page has arrived, if it has. A failure is left to those who want the page.
    pub(crate) fn settle_arrival(&mut self, page: u64) {
        let outcome = self.arriving.0.get(&page).and_then(|arrival| arrival.transfer.outcome());
        if outcome == Some(Ok(())) {
            self.find(page);
        }
    }

    /// Takes all pages off the lists.
    pub(crate) fn unlist_all(&self) {
        let arriving = self.arriving.0.values().map(|arrival| &arrival.frame);
        self.pages.values().chain(arriving).for_each(FrameRef::unlist);
    }

    fn has_or_awaits(&self, page: u64) -> bool {
        self.pages.contains_key(&page) || self.arriving.0.contains_key(&page)
    }

    /// Whether that frame is the page, or is to become it.
    fn has_frame(&self, page: u64, frame: &FrameRef<E>) -> bool {
        let arriving = self.arriving.0.get(&page).map(|arrival| &arrival.frame);
        self.pages.get(&page).or(arriving).is_some_and(|kept| kept.number() == frame.number())
    }

    /// The frame of a page, if it is in memory.
    pub(crate) fn stored_page(&mut self, page: u64) -> Result<FrameRef<E>, BackingError> {
        match self.find(page) {
            Found::Here(frame) => Ok(frame),
            Found::Failed => Err(BackingError::Failed),
            Found::OnTheWay(_) | Found::Absent => Err(BackingError::NotYet),
        }
    }

    /// A frame for a page, listed; what lies behind the object's end is zero.
    fn fresh_frame(&self, environment: &E, page: u64, number: u32) -> Result<FrameRef<E>, BackingError> {
        let frame = FrameRef::allocate(environment).map_err(|_| BackingError::OutOfMemory)?;
        // The mark may be left from the frame's last owner.
        environment.frames().take_dirty(frame.number());
        let used = (self.size - page * PAGE_SIZE).min(PAGE_SIZE) as usize;
        frame.clear(used, PAGE - used);
        environment.frames().list_page(frame.number(), identity(number, page));
        Ok(frame)
    }

    /// Notes pages from `first` on as arriving, up to the first that is here and `most` at most; their frames.
    fn expect(
        &mut self,
        environment: &E,
        number: u32,
        (first, most): (u64, u64),
        transfer: &Arc<Transfer>,
    ) -> Result<Vec<FrameRef<E>>, BackingError> {
        let end = self.size.div_ceil(PAGE_SIZE).min(first + most);
        let mut frames = Vec::new();
        for page in first..end {
            if self.has_or_awaits(page) {
                break;
            }
            let frame = match self.fresh_frame(environment, page, number) {
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
            leaving: AtomicUsize::new(0),
            number: environment.frames().number_object(),
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
                    let frames =
                        contents.expect(self.environment(), stored.number, (page, wanted), &transfer)?;
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
    pub fn read(&self, offset: u64, bytes: &mut [u8], trail: &Trail) -> Result<usize, BackingError> {
        self.carry(offset, bytes.len(), pages_of, |at, part| {
            let (page, start) = split(at);
            let frame = self.contents.lock().stored_page(page)?;
            self.note_use(page, &frame, trail);
            frame.read(start, &mut bytes[part]);
            Ok(())
        })
    }

    /// Copies bytes in, up to the object's end; says how many. May sleep. They are in the store after [`MemoryObject::write_back`].
    ///
    /// # Errors
    /// When not even the first page could be had. A failure later shows as a short count.
    pub fn write(&self, offset: u64, bytes: &[u8], trail: &Trail) -> Result<usize, BackingError> {
        // Of the pages behind the first, those that are written as a whole need not come.
        self.carry(offset, bytes.len(), |_| 1, |at, part| self.write_piece(at, &bytes[part], trail))
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
    fn write_piece(&self, offset: u64, bytes: &[u8], trail: &Trail) -> Result<(), BackingError> {
        let (page, start) = split(offset);
        let number = self.number().unwrap_or_default();
        let mut contents = self.contents.lock();
        let frame = match contents.find(page) {
            Found::Here(frame) => frame,
            Found::Failed => return Err(BackingError::Failed),
            Found::Absent
                if start == 0 && (bytes.len() == PAGE || offset + bytes.len() as u64 == contents.size) =>
            {
                let frame = contents.fresh_frame(self.environment(), page, number)?;
                contents.pages.insert(page, frame.clone());
                frame
            }
            Found::OnTheWay(_) | Found::Absent => return Err(BackingError::NotYet),
        };
        // Both under the lock in which marks are taken (`take_dirty`): a mark that is taken stands for bytes that are there.
        self.environment().frames().note_dirty(frame.number());
        frame.write(start, bytes);
        self.note_use(page, &frame, trail);
        Ok(())
    }

    /// A call uses a page.
    fn note_use(&self, page: u64, frame: &FrameRef<E>, trail: &Trail) {
        if trail.goes_on_to(page) {
            self.environment().frames().note_used(frame.number());
        }
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
                stored.leaving.fetch_add(1, Relaxed);
            });
            transfers.extend(run.send(&stored.store));
        }
        if transfers.is_empty() {
            // What was written back before was made lasting then.
            return;
        }
        // All of them are waited for.
        let failed = transfers.iter().filter(|transfer| stored.store.wait(transfer).is_err()).count();
        stored.leaving.store(0, Relaxed);
        if stored.store.make_lasting().is_err() || failed > 0 {
            stored.failures.fetch_add(1, Relaxed);
        }
    }

    /// How many pages are being written back.
    pub fn leaving_pages(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.leaving.load(Relaxed))
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

    /// Its number among the objects whose pages are listed.
    pub(crate) fn number(&self) -> Option<u32> {
        self.stored.as_ref().map(|stored| stored.number)
    }

    /// Gives pages that were looked at back to their lists, with what their entries said.
    pub(crate) fn put_back(&self, pages: Vec<(Candidate<E>, Seen)>) {
        let mut contents = self.contents.lock();
        for ((page, frame), seen) in &pages {
            // Who is looked at while it arrives is a page from now on, if it has arrived.
            contents.settle_arrival(*page);
            if contents.has_frame(*page, frame) {
                self.environment().frames().judge(frame.number(), seen.is_used);
            } else {
                frame.unlist();
            }
        }
        // Released behind the lock, as releasing takes other locks.
        drop(contents);
        drop(pages);
    }

    /// Takes back all clean pages, in use or not, with one flush if there are not too many; says how many. May sleep.
    pub fn forget_clean(self: &Arc<Self>) -> usize {
        let (environment, mut gone, mut next) = (self.environment(), 0, 0);
        // Those that wait already are in nobody's way then.
        environment.waiting().release(environment, usize::MAX);
        self.settle_arrivals();
        while let Some(part) = self.resident_part(next, u64::MAX, PAGES_TO_A_FLUSH) {
            next = part.end;
            gone += self.put_by(part);
        }
        gone + environment.waiting().release(environment, usize::MAX)
    }

    fn settle_arrivals(&self) {
        let mut contents = self.contents.lock();
        let arriving: Vec<u64> = contents.arriving.0.keys().copied().collect();
        arriving.into_iter().for_each(|page| contents.settle_arrival(page));
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
