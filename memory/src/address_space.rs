//! An address space: areas, the page tables that realise them, and what `coherence` knows about them.
//!
//! Locks, outermost first:
//! 1. the area lock (may sleep): exclusive for what changes areas or takes tables out, shared for page faults, accesses
//!    by the kernel, and `madvise`'s dropping of pages;
//! 2. an object's list of its mappings (may sleep); `mappings` says who may walk it, and the tables, without an area lock;
//! 3. the lock of places (may sleep), which is the same for pages of no object: `relocation`;
//! 4. a leaf table's lock (spins); two at once only in `relocation` and in `fork`, parent first;
//! 5. an object's lock (spins), never under a table lock; swap's (spins), under one;
//! 6. the frame allocator's locks, which are leaves.
//!
//! A flush is always waited for with the area lock held (so that nobody maps anything new at an address while some CPU
//! still holds the old translation), and under a table lock only where the comment at that place says why.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use coherence::{Cause, Space};
use lock_api::{RwLock, RwLockReadGuard};

use crate::announcements::{Announcements, Exclusive};
use crate::area::{Area, AreaFlags, AreaSnapshot};
use crate::areas::Areas;
use crate::changes::Changes;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::{Error, OutOfMemory};
use crate::frame::FrameNumber;
use crate::heap::Heap;
use crate::homes::Homes;
use crate::limits::{Limit, Limits};
use crate::own_tables::OwnTables;
use crate::page_table::{Mapping, PageTable};
use crate::range::PageRange;
use crate::userfault::Monitors;

/// One address space.
pub struct AddressSpace<E: Environment> {
    pub(crate) environment: E,
    space: Space,
    /// The tables, for whoever keeps those that it walks in place by other means than the area lock (`mappings`).
    pub(crate) tables_in_place: PageTable<E>,
    /// The upper tables that CPUs have for themselves.
    pub(crate) own_tables: Arc<OwnTables<E>>,
    layout: RwLock<E::AreaLock, Layout<E>>,
    /// While it is held shared, pages of no object, and tables, stay at their addresses.
    pub(crate) places: RwLock<E::AreaLock, ()>,
    pub(crate) limits: Limits,
    /// Pages that entries map, without the page of zeroes.
    resident: AtomicU64,
    /// The most that `resident` has been at the end of a fault.
    resident_peak: AtomicU64,
    /// Pages that are in slots.
    swapped: AtomicU64,
    /// Where those who look for unused pages go on (`swap_out`).
    pub(crate) swap_hand: AtomicU64,
    /// The page of the latest spurious fault, and in its low bits how many there were in a row.
    pub(crate) spurious: AtomicU64,
    /// Whether any area has ever been watched: what need not be asked of the others.
    pub(crate) has_monitors: AtomicBool,
}

/// What the area lock protects.
pub(crate) struct Layout<E: Environment> {
    pub(crate) areas: Areas<E>,
    pub(crate) tables: PageTable<E>,
    pub(crate) heap: Heap,
    /// Where CPUs place small mappings that shall lie apart from others'.
    pub(crate) homes: Box<Homes>,
    /// How what is mapped from now on is locked.
    pub(crate) locks_to_come: AreaFlags,
    /// Who watches areas.
    pub(crate) monitors: Monitors<E>,
    /// What they are told when the lock is released.
    pub(crate) announcements: Option<Box<Announcements<E>>>,
    /// Nothing will ever run here again.
    pub(crate) has_ended: bool,
}

impl<E: Environment> Layout<E> {
    fn new(areas: Areas<E>, tables: PageTable<E>) -> Self {
        let (heap, homes, monitors) = (Heap::default(), Box::new(Homes::new()), Monitors::new());
        let locks_to_come = AreaFlags::empty();
        Self { areas, tables, heap, homes, locks_to_come, monitors, announcements: None, has_ended: false }
    }
}

/// Sizes of an address space in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// All that is mapped.
    pub mapped: u64,
    /// What is in memory.
    pub resident: u64,
    /// The most that was in memory.
    pub resident_peak: u64,
    /// What is in slots.
    pub swapped: u64,
}

pub(crate) type Shared<'a, E> = RwLockReadGuard<'a, <E as Environment>::AreaLock, Layout<E>>;

impl<E: Environment> AddressSpace<E> {
    /// An address space with nothing in it.
    ///
    /// # Errors
    /// When there is no frame for its root table.
    pub fn new(environment: &E) -> Result<Arc<Self>, OutOfMemory> {
        Self::with_limits(environment, Limits::new())
    }

    pub(crate) fn with_limits(environment: &E, limits: Limits) -> Result<Arc<Self>, OutOfMemory> {
        let tables = PageTable::new(environment)?;
        let space = environment.coherence().new_space(tables.root_address());
        Ok(Arc::new_cyclic(|itself| Self {
            environment: environment.clone(),
            space,
            tables_in_place: tables.view(),
            own_tables: tables.own_tables().clone(),
            layout: RwLock::new(Layout::new(Areas::new(itself.clone()), tables)),
            places: RwLock::new(()),
            limits,
            resident: AtomicU64::new(0),
            resident_peak: AtomicU64::new(0),
            swapped: AtomicU64::new(0),
            swap_hand: AtomicU64::new(0),
            spurious: AtomicU64::new(0),
            has_monitors: AtomicBool::new(false),
        }))
    }

    /// What CPUs load and `coherence` works with.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Sets a limit, in bytes.
    pub fn set_limit(&self, limit: Limit, bytes: u64) {
        self.limits.set(limit, bytes);
    }

    /// How large it is.
    pub fn sizes(&self) -> Sizes {
        let resident = self.resident.load(Relaxed);
        Sizes {
            mapped: self.shared().areas.mapped_pages(),
            resident,
            resident_peak: self.resident_peak.load(Relaxed).max(resident),
            swapped: self.swapped.load(Relaxed),
        }
    }

    /// All areas in order, as `/proc/PID/maps` shows them.
    pub fn snapshot(&self) -> Vec<AreaSnapshot> {
        self.shared().areas.iter().map(Area::snapshot).collect()
    }

    /// How many pages of a range are in memory.
    pub fn resident_in(&self, range: PageRange) -> u64 {
        let layout = self.shared();
        let mut count = 0;
        layout.tables.for_each(range, |mapping, part| {
            count += match mapping {
                Mapping::Leaf(leaf) => leaf.used_pages(part).count() as u64,
                Mapping::Large(_) => part.pages(),
            };
        });
        count
    }

    pub(crate) fn shared(&self) -> Shared<'_, E> {
        self.layout.read()
    }

    pub(crate) fn try_shared(&self) -> Option<Shared<'_, E>> {
        self.layout.try_read()
    }

    pub(crate) fn exclusive(&self) -> Exclusive<'_, E> {
        Exclusive::new(self.layout.write())
    }

    pub(crate) fn changes(&self, cause: Cause) -> Changes<'_, E> {
        Changes::new(&self.environment, (&self.space, &self.own_tables), cause)
    }

    /// The changes of a fault, whose table lock is held already and until they are finished.
    pub(crate) fn changes_under_lock(&self, cause: Cause) -> Changes<'_, E> {
        Changes::under_lock(&self.environment, (&self.space, &self.own_tables), cause)
    }

    pub(crate) fn is_zero_frame(&self, frame: FrameNumber) -> bool {
        frame == self.environment.frames().zero_frame()
    }

    /// Whether the frame has no owner but the entry that maps it, so that it may be written without a copy. Asked
    /// under the lock of the entry's table: whoever else could take a reference must take it from that entry (or from
    /// the object, whose own reference is then the second).
    pub(crate) fn is_exclusive(&self, entry: Entry) -> bool {
        if entry.is_large() {
            return self.environment.frames().is_sole_run(entry.frame());
        }
        !self.is_zero_frame(entry.frame()) && self.environment.frames().references(entry.frame()) == 1
    }

    /// Counts pages whose entries have come. To be called under the lock of their table, and the two that count less at any time after an entry has gone:
    /// else somebody could take a page out, and count that, before it was counted in, and the count would be below nothing for a while.
    pub(crate) fn note_resident(&self, more: u64) {
        let now = self.resident.fetch_add(more, Relaxed) + more;
        if now > self.resident_peak.load(Relaxed) {
            self.resident_peak.store(now, Relaxed);
        }
    }

    /// How many pages are in memory.
    pub(crate) fn resident_pages(&self) -> u64 {
        self.resident.load(Relaxed)
    }

    /// As [`AddressSpace::note_resident`], for pages that are in a slot.
    pub(crate) fn note_swapped(&self, more: u64) {
        if more > 0 {
            self.swapped.fetch_add(more, Relaxed);
        }
    }

    pub(crate) fn note_unswapped(&self, fewer: u64) {
        if fewer > 0 {
            let before = self.swapped.fetch_sub(fewer, Relaxed);
            debug_assert!(before >= fewer, "pages came back that had not been counted");
        }
    }

    pub(crate) fn note_gone(&self, fewer: u64) {
        let before = self.resident.fetch_sub(fewer, Relaxed);
        debug_assert!(before >= fewer, "pages went that had not been counted");
    }

    /// Checks that `pages` more may be mapped.
    pub(crate) fn check_expansion(&self, layout: &Layout<E>, pages: u64) -> Result<(), Error> {
        self.limits.check(Limit::AddressSpace, layout.areas.mapped_pages().saturating_add(pages))
    }

    /// Checks that `pages` more of private memory that can be written may be promised.
    pub(crate) fn check_commitment(&self, layout: &Layout<E>, pages: u64) -> Result<(), Error> {
        if pages > self.environment.frames().statistics_total() {
            return Err(Error::OutOfMemory);
        }
        if self.limits.get(Limit::Data) == u64::MAX {
            return Ok(());
        }
        let data: u64 =
            layout.areas.iter().filter(|area| area.is_data()).map(|area| area.range().pages()).sum();
        self.limits.check(Limit::Data, data.saturating_add(pages))
    }

    /// Empties the user half for good, after the last thread that could use it is gone: drops all areas and releases
    /// their frames. The tables stay until the address space is dropped, which is when no CPU has it loaded any more.
    ///
    /// No flush and no interrupt: nothing will ever run in this space again. CPUs that still have it loaded, also this
    /// one, only borrow its kernel half; they use no user address, and before any CPU runs user code again it loads
    /// another root. Hardware may go on walking these tables speculatively and fill translations that nobody can use;
    /// the tables themselves stay intact for it.
    pub fn teardown_user(&self) {
        let mut layout = self.exclusive();
        let frames = self.environment.frames();
        let mut gone = 0;
        for area in layout.areas.iter() {
            // What a private area's program has stored to is a frame of its own, for which the mark means nothing.
            let is_shared = area.is_shared();
            layout.tables.for_each(area.range(), |mapping, part| {
                let leaf = match mapping {
                    Mapping::Leaf(leaf) => leaf,
                    Mapping::Large(large) => {
                        gone += part.pages();
                        return self.release_large(large);
                    }
                };
                for (address, _) in leaf.used_entries(part) {
                    let old = leaf.replace(address, Entry::EMPTY);
                    if let Some(slot) = old.slot() {
                        self.environment.swap().give_up(&self.environment, slot);
                        self.note_unswapped(1);
                    }
                    if !old.holds_page() {
                        continue;
                    }
                    let frame = old.frame();
                    if is_shared && old.has(Bits::DIRTY) {
                        frames.note_dirty(frame);
                    }
                    if !self.is_zero_frame(frame) {
                        gone += 1;
                        frames.release(self.environment.current_cpu(), frame);
                    }
                }
            });
        }
        self.note_gone(gone);
        layout.areas.take_all();
        layout.heap = Heap::default();
        layout.monitors = Monitors::new();
        layout.has_ended = true;
    }
}

impl<E: Environment> Drop for AddressSpace<E> {
    fn drop(&mut self) {
        self.teardown_user();
        self.environment.coherence().end_space(self.space());
    }
}
