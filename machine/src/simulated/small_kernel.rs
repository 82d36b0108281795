//! A small kernel of the machine's own, beside `memory`: it releases the tables' lock before it flushes.
//!
//! No two operations of `memory` can meet half done, as each flushes under the lock that keeps the other out. `coherence`'s rule for
//! operations that do meet (`Gather`, the nested rule) needs a kernel like this one, which promises what `memory` promises: when
//! a drop returns, its pages are gone on all CPUs, whoever took them out, and what it frees nobody reaches. It has a part of each
//! space for itself, of which `memory` knows nothing: the second entry of the root.

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use coherence::{Cause, Flush, Gather, Translation};
use explorer::AtomicU64;
use lock_api::RawMutex;
use memory::{Environment, FrameNumber, PAGE_SIZE, PageRange};

use super::caches::{ACCESSED, DIRTY, FRAME, PRESENT, USER, WRITABLE};
use super::machine::SimulatedEnvironment;
use super::operation::Promise;
use super::platform::SimulatedPlatform;
use super::user::pages;

/// Where its part begins; a table there maps `TABLE` bytes.
pub(super) const BASE: u64 = 1 << 39;
/// All of it: the addresses of that entry of the root, and no others.
pub(super) const PART: Range<u64> = BASE..2 * BASE;
pub(super) const TABLE: u64 = 512 * PAGE_SIZE;

const PRESENT_ENTRY: u64 = PRESENT | WRITABLE | USER;

/// What a drop has taken out.
#[derive(Default)]
struct Unhooked {
    frames: Vec<u64>,
    tables: Vec<u64>,
}

type SomeGather<'a> = Gather<'a, SimulatedPlatform, Unhooked>;

/// What `coherence` is told of an entry.
fn translation(entry: u64) -> Translation {
    Translation {
        present: entry & PRESENT != 0,
        frame: entry & FRAME,
        writable: entry & WRITABLE != 0,
        user: entry & USER != 0,
        accessed: entry & ACCESSED != 0,
        // It takes the mark with a flush only.
        unused: entry & ACCESSED == 0,
        dirty: entry & DIRTY != 0,
        ..Translation::default()
    }
}

impl SimulatedEnvironment {
    /// Handles a fault in this kernel's part: a page of zeroes, if there is none.
    pub(super) fn small_fault(&self, address: u64) {
        let space = self.loaded();
        self.0.small_lock.lock();
        let leaf_entry = self.upper_entry(space.space().root(), address);
        let leaf = self.table_behind(leaf_entry);
        let entry = self.0.word(leaf + address / PAGE_SIZE % 512 * 8);
        if entry.load(Relaxed) & PRESENT == 0 {
            entry.store(self.zeroed_frame() | PRESENT_ENTRY, Release);
        }
        self.unlock_small();
    }

    /// Drops pages, and the tables that become empty. With `names` it tells `coherence` what it is about.
    pub(super) fn small_drop(&self, range: PageRange, names: bool) {
        let space = self.loaded();
        self.call("drop", &space, range, Promise::Removal, || {
            let mut gather: SomeGather<'_> =
                self.coherence().gather(space.space(), Cause::Dontneed, Unhooked::default());
            if names {
                gather = gather.about(Flush::range(range.start(), range.end(), PAGE_SIZE));
            }
            self.0.small_lock.lock();
            for page in (range.start()..range.end()).step_by(PAGE_SIZE as usize) {
                self.unhook(&mut gather, space.space().root(), page);
            }
            self.unlock_small();
            let unhooked = gather.finish().into_inner();
            unhooked.frames.into_iter().chain(unhooked.tables).for_each(|frame| self.free(frame));
        });
    }

    /// Makes pages unwritable that would have a second owner from now on, if there were one. Their entries count as unused.
    pub(super) fn small_share(&self, range: PageRange) {
        let space = self.loaded();
        self.call("share", &space, range, Promise::Agreement, || {
            let mut gather: SomeGather<'_> =
                self.coherence().gather(space.space(), Cause::Fork, Unhooked::default());
            self.0.small_lock.lock();
            for page in (range.start()..range.end()).step_by(PAGE_SIZE as usize) {
                let leaf = self.table_behind(self.upper_entry(space.space().root(), page));
                let entry = self.0.word(leaf + page / PAGE_SIZE % 512 * 8);
                let old = entry.fetch_and(!(WRITABLE | ACCESSED), AcqRel);
                gather.change(page, PAGE_SIZE, &translation(old), &translation(old & !(WRITABLE | ACCESSED)));
            }
            self.unlock_small();
            gather.finish().into_inner();
        });
    }

    /// Puts another frame in a page's place, under the lock until the old one is flushed, as a page fault does.
    pub(super) fn small_replace(&self, page: u64) {
        let space = self.loaded();
        self.call("replace", &space, pages(page, 1), Promise::Agreement, || {
            self.0.small_lock.lock();
            let leaf = self.table_behind(self.upper_entry(space.space().root(), page));
            let entry = self.0.word(leaf + page / PAGE_SIZE % 512 * 8);
            let mut gather = self.coherence().gather_under_lock(space.space(), Cause::CopyOnWrite, ());
            let old = entry.swap(0, AcqRel);
            gather.change(page, PAGE_SIZE, &translation(old), &Translation::default());
            gather.finish().into_inner();
            entry.store(self.zeroed_frame() | PRESENT_ENTRY, Release);
            self.free(old & FRAME);
            self.unlock_small();
        });
    }

    fn unhook(&self, gather: &mut SomeGather<'_>, root: u64, page: u64) {
        let upper = self.upper_entry(root, page);
        let leaf = upper.load(Relaxed) & FRAME;
        if leaf == 0 {
            return;
        }
        let old = self.0.word(leaf + page / PAGE_SIZE % 512 * 8).swap(0, AcqRel);
        gather.change(page, PAGE_SIZE, &translation(old), &Translation::default());
        if old & PRESENT != 0 {
            gather.list_mut().frames.push(old & FRAME);
        }
        // Nobody else changes the table under the lock.
        if (0..512).all(|index| self.0.word(leaf + index * 8).peek() == 0) {
            upper.store(0, Release);
            gather.table_freed(page / TABLE * TABLE, TABLE);
            gather.list_mut().tables.push(leaf);
        }
    }

    /// The entry for the leaf table of an address; the levels above are made where they are missing.
    fn upper_entry(&self, root: u64, address: u64) -> &AtomicU64 {
        let third = self.table_behind(self.0.word(root + 8));
        let second = self.table_behind(self.0.word(third));
        self.0.word(second + address / TABLE % 512 * 8)
    }

    /// The table that an entry leads to, made if there is none.
    fn table_behind(&self, entry: &AtomicU64) -> u64 {
        let found = entry.load(Relaxed);
        if found & PRESENT != 0 {
            return found & FRAME;
        }
        let table = self.zeroed_frame();
        entry.store(table | PRESENT_ENTRY, Release);
        table
    }

    fn zeroed_frame(&self) -> u64 {
        let frame = self.frames().allocate_user(self.current_cpu()).expect("a scenario needs few frames");
        self.frames().zero(frame);
        frame.address()
    }

    fn free(&self, address: u64) {
        let frame = FrameNumber::containing(address).expect("it was allocated");
        self.frames().release(self.current_cpu(), frame);
    }

    #[allow(unsafe_code)]
    fn unlock_small(&self) {
        // SAFETY: each caller has taken the lock, a few lines above.
        unsafe { self.0.small_lock.unlock() };
    }

    /// Gives back all that this kernel has in a space which no CPU uses any more.
    pub(super) fn end_small_part(&self, root: u64) {
        let entries = |table: u64| (0..512).map(move |index| table + index * 8);
        let below = |entry: u64| Some(self.0.word(entry).peek() & FRAME).filter(|frame| *frame != 0);
        let Some(third) = below(root + 8) else { return };
        for second in entries(third).filter_map(below) {
            for leaf in entries(second).filter_map(below) {
                entries(leaf).filter_map(below).for_each(|frame| self.free(frame));
                self.free(leaf);
            }
            self.free(second);
        }
        self.free(third);
        self.0.word(root + 8).poke(0);
    }
}
