//! Physical memory: every frame with its reference count, handed out through per-CPU caches over a buddy allocator.
//!
//! All of physical memory is visible at one virtual address, the direct map; the kernel touches frames only through
//! it, and so never through a user translation. Each frame has [`Metadata`]: how many references keep it, and, for a
//! page table, the lock of that table together with the number of its entries in use.
//!
//! Locks: a CPU's cache lock, then the buddy lock. Both are leaves: nothing is called while they are held. They may
//! be taken with interrupts on, so **interrupt handlers must not allocate or release frames**: one that interrupts
//! the holder on the same CPU would spin forever.
//!
//! The last frames are kept for the kernel: [`Frames::allocate_user`] fails while fewer than a reserve are left, so
//! that the way out of memory shortage (killing a victim, tearing its space down) never lacks a frame itself.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

use coherence::{CpuId, MAX_CPUS, Sharers};
use lock_api::{Mutex, RawMutex};

use crate::buddy::{BlockLink, Buddy, Links, MAX_ORDER};
use crate::error::OutOfMemory;
use crate::evictions::Mark;
use crate::frame::FrameNumber;
use crate::large_pages::LargePages;
use crate::page_lists::{PageIdentity, PageLists, Place};
use crate::range::PAGE_SIZE;
use crate::sync::{self, AtomicU32, AtomicU64, fence};

const PAGE: usize = PAGE_SIZE as usize;
/// Frames in one CPU's cache at most, and how many move between a cache and the buddy allocator at once.
const CACHE: usize = 64;
const BATCH: usize = 32;
/// One frame in this many is kept for the kernel's own needs.
const RESERVE_SHARE: usize = 128;

/// What is known about one frame.
pub(crate) struct Metadata<L> {
    pub(crate) references: AtomicU32,
    /// For a page table: how many of its entries are not empty; the lock is the table's lock.
    pub(crate) table: Mutex<L, u16>,
    /// The page of an object was stored to, and has not been written out since. Means nothing for other frames.
    dirty: AtomicBool,
    /// For a leaf table: the CPUs that have linked it into upper tables of their own.
    sharers: Sharers,
    pub(crate) link: BlockLink,
    /// Of the page of a store: on which list it is.
    pub(crate) place: Place,
    pub(crate) identity: PageIdentity,
    /// Of any page: when it was taken back.
    pub(crate) eviction: Mark,
    /// How many entries of it were taken out whose flush may still wait: that many CPUs' caches or more may lead here.
    pub(crate) waiting: PlainCount,
}

/// A count that the checkers need not look at: it decides nothing.
type PlainCount = core::sync::atomic::AtomicU32;

/// Frames that one CPU took from, or owes to, the buddy allocator. On lines of its own.
#[repr(align(64))]
struct Cache<L>(Mutex<L, CacheList>);

struct CacheList {
    count: usize,
    frames: [u32; CACHE],
}

/// How full physical memory is, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameStatistics {
    /// Frames that the allocator manages (without the metadata's own).
    pub total: usize,
    /// Frames that are free, in the buddy allocator or a cache.
    pub free: usize,
    /// Frames that hold the metadata.
    pub metadata: usize,
}

/// All of physical memory. Empty until [`Frames::initialize`].
pub struct Frames<L> {
    direct_map: AtomicPtr<u8>,
    metadata: AtomicPtr<Metadata<L>>,
    /// Frame numbers below this have metadata.
    pub(crate) limit: AtomicUsize,
    total: AtomicUsize,
    metadata_frames: AtomicUsize,
    zero: AtomicUsize,
    caches: [Cache<L>; MAX_CPUS],
    buddy: Mutex<L, Buddy>,
    pub(crate) page_lists: Mutex<L, PageLists>,
    large_pages: LargePages,
    /// Below so many free frames it is noted that little is left; 0 is never.
    low_mark: AtomicUsize,
    was_low: AtomicBool,
}

impl<L: RawMutex> Frames<L> {
    /// No memory yet.
    pub const fn empty() -> Self {
        Self {
            direct_map: AtomicPtr::new(core::ptr::null_mut()),
            metadata: AtomicPtr::new(core::ptr::null_mut()),
            limit: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            metadata_frames: AtomicUsize::new(0),
            zero: AtomicUsize::new(0),
            caches: [const { Cache(Mutex::const_new(L::INIT, CacheList { count: 0, frames: [0; CACHE] })) };
                MAX_CPUS],
            buddy: Mutex::const_new(L::INIT, Buddy::new()),
            page_lists: Mutex::const_new(L::INIT, PageLists::new()),
            large_pages: LargePages::new(),
            low_mark: AtomicUsize::new(0),
            was_low: AtomicBool::new(false),
        }
    }

    /// From now on it is noted when fewer frames than these are free.
    pub fn watch(&self, low_mark: usize) {
        self.low_mark.store(low_mark, Relaxed);
    }

    /// Whether fewer frames were free since that was last forgotten, when a CPU took some.
    #[inline]
    pub fn was_low(&self) -> bool {
        self.was_low.load(Relaxed)
    }

    /// See [`Frames::was_low`].
    pub fn forget_low(&self) {
        self.was_low.store(false, Relaxed);
    }

    /// Takes over physical memory. `usable` lists the physical byte ranges that are free RAM; the metadata is
    /// carved from the first that is large enough. Called once, before any other method and before other CPUs run.
    ///
    /// # Panics
    /// When no range has room for the metadata.
    ///
    /// # Safety
    /// Every byte of physical memory below the end of the highest range is readable and writable at `direct_map` +
    /// its address for as long as `self` lives, `direct_map` is page-aligned, and nothing else uses the ranges.
    #[allow(unsafe_code)]
    pub unsafe fn initialize(&self, direct_map: *mut u8, usable: &[Range<u64>]) {
        let limit = usable.iter().map(|range| range.end / PAGE_SIZE).max().unwrap_or(0) as usize;
        let size = (limit * size_of::<Metadata<L>>()).next_multiple_of(PAGE);
        let home = usable
            .iter()
            .map(whole_frames)
            .find(|frames| frames.end.saturating_sub(frames.start) * PAGE >= size)
            .expect("no usable range has room for the frames' metadata");
        // SAFETY: the caller vouches for the direct map and for sole use of the range; `size` bytes fit in it.
        let metadata = unsafe { direct_map.add(home.start * PAGE) }.cast::<Metadata<L>>();
        for index in 0..limit {
            let fresh = Metadata {
                references: AtomicU32::new(0),
                table: Mutex::const_new(L::INIT, 0),
                dirty: AtomicBool::new(false),
                link: BlockLink::new(),
                place: Place::new(),
                identity: PageIdentity::new(0),
                eviction: Mark::new(0),
                sharers: Sharers::new(),
                waiting: PlainCount::new(0),
            };
            // SAFETY: inside the carved range (`size` covers `limit` of them), page-aligned, and not yet shared.
            unsafe { metadata.add(index).write(fresh) };
        }
        self.direct_map.store(direct_map, Relaxed);
        self.metadata.store(metadata, Relaxed);
        self.limit.store(limit, Release);
        self.metadata_frames.store(size / PAGE, Relaxed);
        for range in usable {
            let mut frames = whole_frames(range);
            if frames.start == home.start {
                frames.start += size / PAGE;
            }
            self.add(frames);
        }
        let zero = CpuId::new(0)
            .ok_or(OutOfMemory)
            .and_then(|cpu| self.allocate(cpu))
            .expect("no frame for the page of zeroes");
        self.zero(zero);
        self.zero.store(zero.index(), Relaxed);
    }

    /// Adds frames that were in use until now (boot code, an unpacked archive) to the free ones.
    /// They must lie below the end of the highest range given to [`Frames::initialize`] and be free for good.
    pub fn add(&self, frames: Range<usize>) {
        // Frame 0 stays unused: its number is "none yet" for the page of zeroes.
        let frames = frames.start.max(1)..frames.end.min(self.limit.load(Relaxed));
        let mut buddy = self.buddy.lock();
        self.total.fetch_add(frames.len(), Relaxed);
        let mut next = frames.start;
        while next < frames.end {
            // The largest block that starts here: as aligned as its number, and no longer than what is left.
            let order = next.trailing_zeros().min((frames.end - next).ilog2()).min(MAX_ORDER as u32) as usize;
            buddy.give(self, next as u32, order);
            next += 1 << order;
        }
    }

    /// A frame for the kernel itself, with one reference. Contents undefined.
    ///
    /// # Errors
    /// When not one frame is free.
    pub fn allocate(&self, cpu: CpuId) -> Result<FrameNumber, OutOfMemory> {
        self.allocate_above(cpu, 0)
    }

    /// A frame for a user page or a page table, with one reference. Contents undefined.
    ///
    /// # Errors
    /// When only the kernel's reserve is left.
    pub fn allocate_user(&self, cpu: CpuId) -> Result<FrameNumber, OutOfMemory> {
        self.allocate_above(cpu, self.reserve())
    }

    /// How many frames are kept for the kernel.
    pub(crate) fn reserve(&self) -> usize {
        self.total.load(Relaxed) / RESERVE_SHARE
    }

    fn allocate_above(&self, cpu: CpuId, reserve: usize) -> Result<FrameNumber, OutOfMemory> {
        let mut cache = self.caches[cpu.index()].0.lock();
        if cache.count == 0 {
            self.refill(&mut cache, reserve)?;
        }
        cache.count -= 1;
        let frame = FrameNumber(cache.frames[cache.count]);
        drop(cache);
        self.metadata(frame).references.store(1, Relaxed);
        sync::frame_given(frame);
        Ok(frame)
    }

    #[cold]
    fn refill(&self, cache: &mut CacheList, reserve: usize) -> Result<(), OutOfMemory> {
        let mut buddy = self.buddy.lock();
        while cache.count < BATCH && buddy.free_frames() > reserve {
            let Some(frame) = buddy.take(self, 0) else { break };
            cache.frames[cache.count] = frame;
            cache.count += 1;
        }
        if buddy.free_frames() < self.low_mark.load(Relaxed) {
            self.was_low.store(true, Relaxed);
        }
        if cache.count == 0 { Err(OutOfMemory) } else { Ok(()) }
    }

    /// A block of 2^order frames, if more than `reserve` others are free.
    pub(crate) fn take_block_above(&self, order: usize, reserve: usize) -> Option<u32> {
        let mut buddy = self.buddy.lock();
        if buddy.free_frames() <= reserve + (1 << order) {
            return None;
        }
        buddy.take(self, order)
    }

    /// Gives a block back to the buddy allocator.
    pub(crate) fn give_block(&self, block: FrameNumber, order: usize) {
        self.buddy.lock().give(self, block.0, order);
    }

    /// Large pages: who gets them, and how many there are.
    #[inline]
    pub fn large_pages(&self) -> &LargePages {
        &self.large_pages
    }

    /// 2^order neighbouring frames, aligned to their size, for the kernel itself (stacks, heap). Contents undefined.
    ///
    /// # Errors
    /// When no block of that size is free.
    pub fn allocate_block(&self, order: usize) -> Result<FrameNumber, OutOfMemory> {
        let block = self.buddy.lock().take(self, order).map(FrameNumber).ok_or(OutOfMemory)?;
        self.metadata(block).references.store(1, Relaxed);
        Ok(block)
    }

    /// Gives back what [`Frames::allocate_block`] gave out, with the same order.
    pub fn release_block(&self, block: FrameNumber, order: usize) {
        self.metadata(block).references.store(0, Relaxed);
        self.give_block(block, order);
    }

    /// One more reference to a frame that already has one.
    pub(crate) fn acquire(&self, frame: FrameNumber) {
        let before = self.metadata(frame).references.fetch_add(1, Relaxed);
        debug_assert!(before > 0, "a free frame was acquired");
    }

    /// One reference less; the last one frees the frame.
    pub fn release(&self, cpu: CpuId, frame: FrameNumber) {
        let references = &self.metadata(frame).references;
        // A sole owner needs no atomic subtraction: nobody else can add a reference. Acquire pairs with the Release
        // of the others' subtractions: their accesses to the frame come before its next owner's.
        if references.load(Acquire) == 1 {
            references.store(0, Relaxed);
        } else {
            let before = references.fetch_sub(1, Release);
            debug_assert!(before > 0, "a free frame was released");
            if before != 1 {
                return;
            }
            fence(Acquire);
        }
        debug_assert_eq!(
            self.metadata(frame).waiting.load(Relaxed),
            0,
            "a frame was freed that CPUs may still use"
        );
        sync::frame_taken(frame);
        let mut cache = self.caches[cpu.index()].0.lock();
        if cache.count == CACHE {
            let mut buddy = self.buddy.lock();
            for _ in 0..BATCH {
                cache.count -= 1;
                buddy.give(self, cache.frames[cache.count], 0);
            }
        }
        let count = cache.count;
        cache.frames[count] = frame.0;
        cache.count += 1;
    }

    /// An entry of this frame was taken out, under its table's lock, whose flush may wait.
    pub(crate) fn note_waiting(&self, frame: FrameNumber) {
        self.metadata(frame).waiting.fetch_add(1, Relaxed);
    }

    /// That flush is over.
    pub(crate) fn have_waited(&self, frame: FrameNumber) {
        let before = self.metadata(frame).waiting.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a frame has waited that did not");
    }

    /// How many references the frame has. Exact only for a caller that excludes new ones.
    pub(crate) fn references(&self, frame: FrameNumber) -> u32 {
        // Acquire: what past owners did to the frame comes before what a caller that finds itself alone does.
        self.metadata(frame).references.load(Acquire)
    }

    /// Marks a page as stored to: under the lock of a table whose entry says so, or of the object. Those locks order the mark.
    pub(crate) fn note_dirty(&self, frame: FrameNumber) {
        self.metadata(frame).dirty.store(true, Relaxed);
    }

    /// Takes the mark away; says whether it was there.
    pub(crate) fn take_dirty(&self, frame: FrameNumber) -> bool {
        self.metadata(frame).dirty.swap(false, Relaxed)
    }

    /// Whether the mark is there.
    pub(crate) fn is_dirty(&self, frame: FrameNumber) -> bool {
        self.metadata(frame).dirty.load(Relaxed)
    }

    /// The frame of zeroes that stands in for anonymous memory that was only read. It is never freed, and entries
    /// that map it hold no reference.
    pub(crate) fn zero_frame(&self) -> FrameNumber {
        FrameNumber(self.zero.load(Relaxed) as u32)
    }

    /// How full memory is. A snapshot: other CPUs go on meanwhile.
    pub fn statistics(&self) -> FrameStatistics {
        let cached: usize = self.caches.iter().map(|cache| cache.0.lock().count).sum();
        FrameStatistics {
            total: self.total.load(Relaxed),
            free: self.buddy.lock().free_frames() + cached,
            metadata: self.metadata_frames.load(Relaxed),
        }
    }

    /// Frames that the allocator manages, free or not.
    pub(crate) fn statistics_total(&self) -> u64 {
        self.total.load(Relaxed) as u64
    }

    /// Fills a frame with zeroes.
    pub fn zero(&self, frame: FrameNumber) {
        self.clear(frame, 0, PAGE);
    }

    /// Fills part of a frame with zeroes. Panics when that reaches beyond its end.
    #[allow(unsafe_code)]
    pub(crate) fn clear(&self, frame: FrameNumber, offset: usize, length: usize) {
        let pointer = self.part(frame, offset, length);
        // SAFETY: `part` checked the bounds. User code on other CPUs may access the same bytes; it is outside this
        // program's memory model, and whatever mix of bytes it sees is its own race.
        unsafe { pointer.write_bytes(0, length) };
    }

    /// Copies bytes out of a frame. Panics when they reach beyond its end.
    #[allow(unsafe_code)]
    pub fn read(&self, frame: FrameNumber, offset: usize, bytes: &mut [u8]) {
        let pointer = self.part(frame, offset, bytes.len());
        // SAFETY: bounds as checked by `part`; `bytes` is borrowed exclusively, so the two cannot overlap.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(pointer, bytes.len()) };
    }

    /// Copies bytes into a frame. Panics when they reach beyond its end.
    #[allow(unsafe_code)]
    pub fn write(&self, frame: FrameNumber, offset: usize, bytes: &[u8]) {
        let pointer = self.part(frame, offset, bytes.len());
        // SAFETY: as in `read`; `bytes` is kernel memory and no frame's contents are ever borrowed as a slice.
        unsafe { pointer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Copies a whole frame.
    #[allow(unsafe_code)]
    pub(crate) fn copy(&self, from: FrameNumber, to: FrameNumber) {
        sync::frame_copied(from);
        let (from, to) = (self.part(from, 0, PAGE), self.part(to, 0, PAGE));
        // SAFETY: two whole frames inside the direct map; `copy` allows them to be the same.
        unsafe { to.copy_from(from, PAGE) };
    }

    /// Whether two frames hold the same.
    pub(crate) fn are_equal(&self, one: FrameNumber, other: FrameNumber) -> bool {
        // What is read here counts, as if it were copied.
        sync::frame_copied(one);
        sync::frame_copied(other);
        const PART: usize = 256;
        (0..PAGE).step_by(PART).all(|offset| {
            let [ours, theirs] = [one, other].map(|frame| {
                let mut bytes = [0; PART];
                self.read(frame, offset, &mut bytes);
                bytes
            });
            ours == theirs
        })
    }

    /// The frame as 512 words, the shape of a page table.
    #[allow(unsafe_code)]
    pub(crate) fn words(&self, frame: FrameNumber) -> &[AtomicU64; 512] {
        // SAFETY: a page-aligned whole frame inside the direct map, alive as long as `self`; atomics may be shared.
        unsafe { &*self.part(frame, 0, PAGE).cast() }
    }

    /// A 32-bit word of a frame. Panics when `offset` is not a multiple of four inside it.
    #[allow(unsafe_code)]
    pub(crate) fn word(&self, frame: FrameNumber, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4));
        // SAFETY: aligned as asserted, inside the frame as checked by `part`; atomics may be shared.
        unsafe { &*self.part(frame, offset, 4).cast() }
    }

    #[allow(unsafe_code)]
    fn part(&self, frame: FrameNumber, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= PAGE && length <= PAGE - offset && frame.index() < self.limit.load(Relaxed));
        // SAFETY: `initialize`'s caller vouched for the direct map up to `limit`.
        unsafe { self.direct_map.load(Relaxed).add(frame.index() * PAGE + offset) }
    }

    /// The CPUs that have linked a leaf table into upper tables of their own.
    #[inline]
    pub(crate) fn sharers(&self, table: FrameNumber) -> &Sharers {
        &self.metadata(table).sharers
    }

    #[allow(unsafe_code)]
    pub(crate) fn metadata(&self, frame: FrameNumber) -> &Metadata<L> {
        assert!(frame.index() < self.limit.load(Relaxed), "a frame outside of physical memory");
        // SAFETY: `initialize` wrote `limit` of them, and they stay for as long as `self` lives.
        unsafe { &*self.metadata.load(Relaxed).add(frame.index()) }
    }
}

impl<L: RawMutex> Links for Frames<L> {
    fn link(&self, frame: u32) -> Option<&BlockLink> {
        ((frame as usize) < self.limit.load(Relaxed)).then(|| &self.metadata(FrameNumber(frame)).link)
    }
}

fn whole_frames(bytes: &Range<u64>) -> Range<usize> {
    bytes.start.div_ceil(PAGE_SIZE) as usize..(bytes.end / PAGE_SIZE) as usize
}
