//! Which pages of stores are in use, and which are idle.
//!
//! Two lists hold all pages that can be had again from a store, of all objects of the machine, linked through their frames' metadata. A page
//! comes to the front of the idle list. Who makes room (`scan`) looks at its other end, where the page is that came first, and either takes it
//! back, or has found it used since the last look:
//!
//! * used once: it goes round once more, marked. What streams through memory is used once, and goes at the latest at the next look.
//! * used again, while marked: it is moved to the list of pages in use. Those are looked at only when they outnumber the idle
//!   ones; who has not been used since its last look goes back to the idle ones.
//!
//! So what streams through memory pushes out what streamed before it, and never more than half of memory, however much of it there
//! is. A set of pages that is used more seldom than half of memory streams by is found by the marks that pages leave when they go (`evictions`).
//!
//! That a page was used is known from the accessed bits of the entries that map it, which only a look at them shows, and from
//! [`note_used`](Frames::note_used): a call read or wrote it, or an entry with that bit went.
//!
//! Locks: that of the lists comes last. A listed frame has its object's reference, which is given up after the page was taken off.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use lock_api::RawMutex;

use crate::evictions::EvictionClock;
use crate::frame::FrameNumber;
use crate::frames::Frames;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Idle = 0,
    Used = 1,
}

/// It belongs to a list.
const LISTED: u8 = 1;
/// That list is the one of used pages.
const IN_USE: u8 = 2;
/// Used since it was last looked at, or found used at that look.
const MARKED: u8 = 4;
/// Somebody looks at it: it is on neither list until that is over.
const ASIDE: u8 = 8;

/// A frame's part: flags.
pub(crate) struct Place(AtomicU8);

/// The identity of the page in a frame that is listed.
pub(crate) type PageIdentity = AtomicU64;

/// Bits of a page's identity that are its number in its object.
const PAGE_BITS: u32 = 40;

/// The identity of a page among all pages of all objects.
pub(crate) fn identity(object: u32, page: u64) -> u64 {
    u64::from(object) << PAGE_BITS | page & ((1 << PAGE_BITS) - 1)
}

/// The object's number and the page's.
pub(crate) fn parts(identity: u64) -> (u32, u64) {
    ((identity >> PAGE_BITS) as u32, identity & ((1 << PAGE_BITS) - 1))
}

impl Place {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    fn has(&self, flag: u8) -> bool {
        self.0.load(Relaxed) & flag != 0
    }
}

/// Pages of stores that are in memory, and what became of them so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Pages that are taken for idle.
    pub idle: usize,
    /// Pages that are taken for used.
    pub used: usize,
    /// Pages that are being looked at.
    pub aside: usize,
    /// Idle pages that were found in use.
    pub activated: u64,
    /// Pages in use that were found idle.
    pub deactivated: u64,
    /// Pages that came back after they were taken back, and this was remembered.
    pub refaulted: u64,
    /// Those of them that were taken for pages in use at once.
    pub refaulted_in_use: u64,
}

impl PageCounts {
    /// All pages of stores that are in memory, or on their way.
    pub const fn all(&self) -> usize {
        self.idle + self.used + self.aside
    }
}

/// The two ends of a list. Frame 0 is never listed: its number is "none".
#[derive(Clone, Copy)]
struct Ends {
    front: u32,
    back: u32,
}

/// The lists.
pub(crate) struct PageLists {
    ends: [Ends; 2],
    counts: PageCounts,
    clock: EvictionClock,
    objects: u32,
}

impl PageLists {
    pub(crate) const fn new() -> Self {
        let counts = PageCounts {
            idle: 0,
            used: 0,
            aside: 0,
            activated: 0,
            deactivated: 0,
            refaulted: 0,
            refaulted_in_use: 0,
        };
        Self { ends: [Ends { front: 0, back: 0 }; 2], counts, clock: EvictionClock::new(), objects: 0 }
    }

    fn count(&mut self, list: List) -> &mut usize {
        match list {
            List::Idle => &mut self.counts.idle,
            List::Used => &mut self.counts.used,
        }
    }

    fn put<L: RawMutex>(&mut self, frames: &Frames<L>, frame: FrameNumber, list: List) {
        let ends = &mut self.ends[list as usize];
        let [before, behind] = frames.metadata(frame).link.neighbours();
        before.store(0, Relaxed);
        behind.store(ends.front, Relaxed);
        match ends.front {
            0 => ends.back = frame.0,
            first => frames.metadata(FrameNumber(first)).link.neighbours()[0].store(frame.0, Relaxed),
        }
        ends.front = frame.0;
        *self.count(list) += 1;
        let place = &frames.metadata(frame).place;
        let kept = place.0.load(Relaxed) & MARKED;
        place.0.store(kept | LISTED | if list == List::Used { IN_USE } else { 0 }, Relaxed);
    }

    /// Takes a listed frame off; says from which list.
    fn take<L: RawMutex>(&mut self, frames: &Frames<L>, frame: FrameNumber) -> List {
        let place = &frames.metadata(frame).place;
        let list = if place.has(IN_USE) { List::Used } else { List::Idle };
        let flags = place.0.load(Relaxed);
        place.0.store(flags & MARKED, Relaxed);
        if flags & ASIDE != 0 {
            self.counts.aside -= 1;
            return list;
        }
        let link = &frames.metadata(frame).link;
        let [before, behind] = link.neighbours().map(|end| end.load(Relaxed));
        let ends = &mut self.ends[list as usize];
        match before {
            0 => ends.front = behind,
            before => frames.metadata(FrameNumber(before)).link.neighbours()[1].store(behind, Relaxed),
        }
        match behind {
            0 => ends.back = before,
            behind => frames.metadata(FrameNumber(behind)).link.neighbours()[0].store(before, Relaxed),
        }
        link.clear();
        *self.count(list) -= 1;
        list
    }

    /// Lists a page that has been taken off as one in use.
    fn activate<L: RawMutex>(&mut self, frames: &Frames<L>, frame: FrameNumber) {
        frames.metadata(frame).place.0.store(0, Relaxed);
        self.put(frames, frame, List::Used);
        self.counts.activated += 1;
        self.clock.advance();
    }
}

impl<L: RawMutex> Frames<L> {
    /// How many pages of stores are in memory, and what became of them.
    pub fn page_counts(&self) -> PageCounts {
        self.page_lists.lock().counts
    }

    /// A number for an object whose pages are to be listed.
    pub(crate) fn number_object(&self) -> u32 {
        let mut lists = self.page_lists.lock();
        lists.objects += 1;
        lists.objects
    }

    /// Lists the frame of a page that comes from its store. Its object has a reference to it until it is taken off again.
    pub(crate) fn list_page(&self, frame: FrameNumber, identity: u64) {
        let mut lists = self.page_lists.lock();
        let place = &self.metadata(frame).place;
        debug_assert!(!place.has(LISTED), "a frame is listed twice");
        self.metadata(frame).identity.store(identity, Relaxed);
        place.0.store(0, Relaxed);
        let mut list = List::Idle;
        if let Some(distance) = self.take_eviction(identity, lists.clock) {
            lists.counts.refaulted += 1;
            if distance <= lists.counts.used {
                lists.counts.refaulted_in_use += 1;
                lists.clock.advance();
                list = List::Used;
            }
        }
        lists.put(self, frame, list);
    }

    /// Takes a page off the lists, if it is on one.
    pub(crate) fn unlist_page(&self, frame: FrameNumber) {
        let mut lists = self.page_lists.lock();
        if self.metadata(frame).place.has(LISTED) {
            lists.take(self, frame);
        }
    }

    /// As [`Frames::unlist_page`], of one that is taken back because memory is short.
    pub(crate) fn evict_page(&self, frame: FrameNumber) {
        let mut lists = self.page_lists.lock();
        let place = &self.metadata(frame).place;
        if place.has(LISTED) {
            lists.take(self, frame);
            self.remember_eviction(self.metadata(frame).identity.load(Relaxed), lists.clock);
            lists.clock.advance();
        }
    }

    /// Takes note that a page was used, if it is listed. The caller has a reference to it. Cheap where there is nothing to do.
    #[inline]
    pub(crate) fn note_used(&self, frame: FrameNumber) {
        let flags = self.metadata(frame).place.0.load(Relaxed);
        if flags & LISTED != 0 && flags & (IN_USE | MARKED) != IN_USE | MARKED {
            self.mark_used(frame);
        }
    }

    #[cold]
    fn mark_used(&self, frame: FrameNumber) {
        let mut lists = self.page_lists.lock();
        let place = &self.metadata(frame).place;
        if !place.has(LISTED) {
            return;
        }
        let flags = place.0.fetch_or(MARKED, Relaxed);
        if flags & MARKED != 0 && flags & (IN_USE | ASIDE) == 0 {
            lists.take(self, frame);
            lists.activate(self, frame);
        }
    }

    /// Takes a page for idle, whatever it was used for. The caller has a reference to it.
    pub(crate) fn make_idle(&self, frame: FrameNumber) {
        let mut lists = self.page_lists.lock();
        let place = &self.metadata(frame).place;
        if place.has(LISTED) && !place.has(ASIDE) {
            let list = lists.take(self, frame);
            place.0.store(0, Relaxed);
            lists.put(self, frame, List::Idle);
            lists.counts.deactivated += u64::from(list == List::Used);
        }
    }

    /// Whether so many pages are in use that some of them should be looked at.
    pub(crate) fn too_few_are_idle(&self) -> bool {
        let counts = self.page_counts();
        counts.idle < counts.used
    }

    /// Hands out up to `most` pages from the back of a list: identity, and frame with a reference. Each is on no list until it has been judged, or
    /// taken off for good.
    pub(crate) fn look_at(&self, list: List, most: usize, mut hand: impl FnMut(u64, FrameNumber)) {
        let mut lists = self.page_lists.lock();
        let most = most.min(*lists.count(list));
        for _ in 0..most {
            let frame = FrameNumber(lists.ends[list as usize].back);
            let place = &self.metadata(frame).place;
            let flags = place.0.load(Relaxed);
            lists.take(self, frame);
            lists.counts.aside += 1;
            place.0.store(flags | ASIDE, Relaxed);
            // The object's reference is there: it is given up after the page was taken off for good.
            self.acquire(frame);
            hand(self.metadata(frame).identity.load(Relaxed), frame);
        }
    }

    /// A page was looked at, and goes back to the front of a list: whether entries have used it since the look before. Under the lock of its
    /// object, whose page it still is.
    pub(crate) fn judge(&self, frame: FrameNumber, by_entries: bool) {
        let mut lists = self.page_lists.lock();
        let place = &self.metadata(frame).place;
        if !place.has(ASIDE) {
            return;
        }
        let list = lists.take(self, frame);
        let was_marked = place.has(MARKED);
        match list {
            List::Idle if by_entries && was_marked => lists.activate(self, frame),
            List::Idle => {
                place.0.store(if by_entries || was_marked { MARKED } else { 0 }, Relaxed);
                lists.put(self, frame, List::Idle);
            }
            List::Used => {
                place.0.store(0, Relaxed);
                let is_used = by_entries || was_marked;
                lists.counts.deactivated += u64::from(!is_used);
                lists.put(self, frame, if is_used { List::Used } else { List::Idle });
            }
        }
    }
}
