//! The page tables of one address space: four levels, one lock per table.
//!
//! Nothing outside this module walks from the root: others ask for the locked leaf table of an address and
//! get a [`Leaf`], or walk all leaf tables of a range. CPUs may have upper tables of their own besides, which lead to the same leaf tables
//! (`own_tables`): what is taken out here is taken out there.
//!
//! Protocol:
//! * A leaf table's entries change only under its lock. Hardware sets accessed and dirty bits meanwhile, so every
//!   change is an atomic exchange, and the value it *returned* is the one that counts.
//! * An upper table's entry is set once, under that table's lock, and then stays while the space's area lock is held
//!   shared: tables are taken out, or moved to other addresses, only under the exclusive area lock (this structure
//!   lives inside that lock). So a walk needs no lock above the leaf. Whoever walks without the area lock holds the
//!   space's lock of places (`relocation.rs`), for the same reason.
//! * A table that was taken out is handed to the caller, who may free it only through a finished gather.
//! * `Metadata::table` counts a table's entries in use; it says at once whether a table holds anything.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameNumber;
use crate::large_entry::Large;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::own_tables::OwnTables;
use crate::range::{PAGE_SIZE, PageRange};
use crate::sync::load_unhooked;

/// The root's level; leaves are level 0.
pub(crate) const ROOT_LEVEL: usize = 3;
/// Entries of the root that belong to user space.
pub(crate) const USER_ENTRIES: usize = 256;
/// Bytes that one leaf table maps.
pub(crate) const LEAF_SPAN: u64 = span(1);

/// Bytes that one entry of a table of this level maps.
pub(crate) const fn span(level: usize) -> u64 {
    PAGE_SIZE << (9 * level)
}

pub(crate) const fn index(address: u64, level: usize) -> usize {
    (address / span(level) % 512) as usize
}

/// The tables of one address space.
pub(crate) struct PageTable<E: Environment> {
    environment: E,
    root: FrameNumber,
    own_tables: Arc<OwnTables<E>>,
    /// Whether the tables end with this.
    owns: bool,
}

impl<E: Environment> PageTable<E> {
    /// Tables that map nothing in the user half.
    pub(crate) fn new(environment: &E) -> Result<Self, OutOfMemory> {
        let root = Self::allocate_root(environment)?;
        let own_tables = OwnTables::new(environment);
        Ok(Self { environment: environment.clone(), root, own_tables, owns: true })
    }

    /// A root with the kernel's half and nothing else.
    pub(crate) fn allocate_root(environment: &E) -> Result<FrameNumber, OutOfMemory> {
        let root = Self::allocate_table(environment)?;
        environment.fill_kernel_half(&environment.frames().words(root)[USER_ENTRIES..]);
        Ok(root)
    }

    /// The upper tables that CPUs have for themselves.
    pub(crate) fn own_tables(&self) -> &Arc<OwnTables<E>> {
        &self.own_tables
    }

    /// The same tables again, for walks; they do not end with this.
    pub(crate) fn view(&self) -> Self {
        let own_tables = self.own_tables.clone();
        Self { environment: self.environment.clone(), root: self.root, own_tables, owns: false }
    }

    /// What a CPU loads to use these tables.
    pub(crate) fn root_address(&self) -> u64 {
        self.root.address()
    }

    pub(crate) fn allocate_table(environment: &E) -> Result<FrameNumber, OutOfMemory> {
        let table = environment.frames().allocate_user(environment.current_cpu())?;
        environment.frames().zero(table);
        environment.frames().begin_table(table);
        Ok(table)
    }

    /// The entry of `address` as it is now, of a small page or a large one, without any lock: a hint, to be looked at again under
    /// the lock.
    #[inline]
    pub(crate) fn peek(&self, address: u64) -> Entry {
        match self.lowest(address) {
            Lowest::Leaf(upper) => {
                let word = &self.environment.frames().words(upper.frame())[index(address, 0)];
                Entry::from_bits(word.load(Acquire))
            }
            Lowest::Large { entry, .. } => entry,
            Lowest::Missing(_) => Entry::EMPTY,
        }
    }

    /// The locked leaf table of `address`, if there is one.
    pub(crate) fn leaf(&self, address: u64) -> Option<Leaf<'_, E>> {
        match self.lowest(address) {
            Lowest::Leaf(upper) => Some(Leaf::lock(&self.environment, upper)),
            Lowest::Large { .. } | Lowest::Missing(_) => None,
        }
    }

    /// The locked leaf table of `address`, made now if there is none; `None` if a large page is mapped there.
    pub(crate) fn leaf_or_create(&self, address: u64) -> Result<Option<Leaf<'_, E>>, OutOfMemory> {
        loop {
            match self.lowest(address) {
                Lowest::Leaf(upper) => return Ok(Some(Leaf::lock(&self.environment, upper))),
                Lowest::Large { .. } => return Ok(None),
                Lowest::Missing(missing) => self.create_below(missing, address)?,
            }
        }
    }

    /// The locked entry of the large page that `address` lies in, if there is one.
    pub(crate) fn large(&self, address: u64) -> Option<Large<'_, E>> {
        match self.lowest(address) {
            Lowest::Large { table, .. } => Large::lock(&self.environment, table, address),
            Lowest::Leaf(_) | Lowest::Missing(_) => None,
        }
    }

    /// The locked empty entry for a large page around `address`, whose table is made now if there is none; `None` if the entry is in
    /// use.
    pub(crate) fn room_for_large(&self, address: u64) -> Result<Option<Large<'_, E>>, OutOfMemory> {
        self.create_down_to(address, 1)?;
        let Ok(table) = self.table_number(address, 1) else { return Ok(None) };
        Ok(Large::lock_empty(&self.environment, table, address))
    }

    /// Whether nothing smaller than a table is mapped around `address`: there is room for a large page.
    pub(crate) fn has_room_for_large(&self, address: u64) -> bool {
        matches!(self.lowest(address), Lowest::Missing(_))
    }

    /// Whether nothing at all is mapped in the reach of the leaf table of `address`. A large page that is being split, and is neither large nor in pieces
    /// meanwhile, is waited for.
    pub(crate) fn is_vacant(&self, address: u64) -> bool {
        match self.lowest(address) {
            Lowest::Missing(Missing { table, level: 1 }) => {
                is_made(Mistake::SplitTakenForNothing)
                    || Large::lock_empty(&self.environment, table, address).is_some()
            }
            Lowest::Missing(_) => true,
            Lowest::Leaf(_) | Lowest::Large { .. } => false,
        }
    }

    /// Visits all that maps part of `range`, locked one at a time, with the part that it maps. Stops at the first error.
    pub(crate) fn try_for_each<X>(
        &self,
        range: PageRange,
        mut visit: impl FnMut(Mapping<'_, '_, E>, PageRange) -> Result<(), X>,
    ) -> Result<(), X> {
        let mut address = range.start();
        while address < range.end() {
            let lowest = self.lowest(address);
            let level = if let Lowest::Missing(missing) = &lowest { missing.level } else { 1 };
            let end = (address / span(level) + 1).saturating_mul(span(level)).min(range.end());
            let part = PageRange::of_area(address, end);
            match lowest {
                Lowest::Missing(_) => {}
                Lowest::Leaf(upper) => {
                    visit(Mapping::Leaf(&mut Leaf::lock(&self.environment, upper)), part)?;
                    self.environment.yield_if_needed();
                }
                Lowest::Large { table, .. } => {
                    // Split, or gone, since we looked: look again.
                    let Some(mut large) = Large::lock(&self.environment, table, address) else { continue };
                    visit(Mapping::Large(&mut large), part)?;
                    drop(large);
                    self.environment.yield_if_needed();
                }
            }
            address = end;
        }
        Ok(())
    }

    /// As [`PageTable::try_for_each`], for visits that cannot fail.
    pub(crate) fn for_each(&self, range: PageRange, mut visit: impl FnMut(Mapping<'_, '_, E>, PageRange)) {
        let result: Result<(), core::convert::Infallible> = self.try_for_each(range, |mapping, part| {
            visit(mapping, part);
            Ok(())
        });
        match result {
            Ok(()) => {}
        }
    }

    /// As [`PageTable::for_each`], of leaf tables alone: for who looks for pages of objects, which are never large.
    pub(crate) fn for_each_leaf(&self, range: PageRange, mut visit: impl FnMut(&mut Leaf<'_, E>, PageRange)) {
        self.for_each(range, |mapping, part| match mapping {
            Mapping::Leaf(leaf) => visit(leaf, part),
            Mapping::Large(_) => debug_assert!(false, "a large page of an object"),
        });
    }

    /// What there is on the way to the entry of a small page.
    #[inline]
    pub(crate) fn lowest(&self, address: u64) -> Lowest {
        let table = match self.table_number(address, 1) {
            Ok(table) => table,
            Err(missing) => return Lowest::Missing(missing),
        };
        // Acquire, as in `table_number`.
        let entry = Entry::from_bits(self.environment.frames().words(table)[index(address, 1)].load(Acquire));
        if entry.is_empty() {
            Lowest::Missing(Missing { table, level: 1 })
        } else if entry.is_large() {
            Lowest::Large { table, entry }
        } else {
            Lowest::Leaf(entry)
        }
    }

    /// The table of a level above the leaves that maps `address`, or the lowest table on the way to it.
    #[inline]
    fn table_number(&self, address: u64, lowest: usize) -> Result<FrameNumber, Missing> {
        let mut table = self.root;
        for level in (lowest + 1..=ROOT_LEVEL).rev() {
            // Acquire pairs with the Release in `create_below`: the table was cleared before it was hooked in.
            let entry = self.environment.frames().words(table)[index(address, level)].load(Acquire);
            if entry == 0 {
                return Err(Missing { table, level });
            }
            table = Entry::from_bits(entry).frame();
        }
        Ok(table)
    }

    /// Makes the tables on the way to the table of `level` that maps `address`, and that one.
    pub(crate) fn create_down_to(&self, address: u64, level: usize) -> Result<(), OutOfMemory> {
        if level == 0 {
            return self.leaf_or_create(address).map(drop);
        }
        while let Err(missing) = self.table_number(address, level) {
            self.create_below(missing, address)?;
        }
        Ok(())
    }

    /// The entry for `address` in its table of `level`; empty if there is no such table.
    pub(crate) fn upper_entry(&self, address: u64, level: usize) -> Entry {
        self.table_number(address, level).map_or(Entry::EMPTY, |table| {
            Entry::from_bits(self.environment.frames().words(table)[index(address, level)].load(Acquire))
        })
    }

    /// Exchanges the entry for `address` in its table of `level`, which is there. To be called under the exclusive area lock
    /// and the exclusive lock of places; the caller owes what was there a new place, or a flush and a release.
    pub(crate) fn replace_upper(&self, address: u64, level: usize, new: Entry) -> Entry {
        let Ok(table) = self.table_number(address, level) else {
            debug_assert!(false, "an entry of a missing table was replaced");
            return Entry::EMPTY;
        };
        let mut used = self.environment.frames().metadata(table).table.lock();
        // AcqRel, as in `Leaf::replace`. Hardware sets the accessed bit until now.
        let word = &self.environment.frames().words(table)[index(address, level)];
        let old = Entry::from_bits(word.swap(new.bits(), AcqRel));
        *used = *used + u16::from(!new.is_empty()) - u16::from(!old.is_empty());
        if !old.is_empty() {
            self.own_tables.unlink_all(address, level);
        }
        old
    }

    /// Whether the table that an upper entry leads to has an entry in use.
    pub(crate) fn is_used(&self, upper: Entry) -> bool {
        *self.environment.frames().metadata(upper.frame()).table.lock() > 0
    }

    /// Where the reach of the lowest entry ends that is missing on the way to the entry of `address`; `None` if none is.
    pub(crate) fn end_of_hole(&self, address: u64) -> Option<u64> {
        let Lowest::Missing(missing) = self.lowest(address) else { return None };
        Some((address / span(missing.level) + 1).saturating_mul(span(missing.level)))
    }

    /// Hooks an empty table into the entry that was missing, unless another CPU was faster.
    fn create_below(&self, missing: Missing, address: u64) -> Result<(), OutOfMemory> {
        let frames = self.environment.frames();
        let fresh = Self::allocate_table(&self.environment)?;
        let mut used = frames.metadata(missing.table).table.lock();
        let word = &frames.words(missing.table)[index(address, missing.level)];
        if word.load(Relaxed) == 0 {
            word.store(Entry::table(fresh).bits(), Release);
            *used += 1;
        } else {
            drop(used);
            frames.release(self.environment.current_cpu(), fresh);
        }
        Ok(())
    }

    /// Takes out every table that maps part of `range` and whose whole reach lies in `gap`, where nothing is mapped
    /// any more. `taken` gets the address and reach of each, and owes it a flush and a release.
    pub(crate) fn take_tables(
        &mut self,
        range: PageRange,
        gap: PageRange,
        taken: &mut impl FnMut(u64, u64, FrameNumber),
    ) {
        self.take_tables_below(self.root, ROOT_LEVEL, range, gap, taken);
    }

    fn take_tables_below(
        &self,
        table: FrameNumber,
        level: usize,
        range: PageRange,
        gap: PageRange,
        taken: &mut impl FnMut(u64, u64, FrameNumber),
    ) {
        let frames = self.environment.frames();
        let mut address = range.start();
        while address < range.end() {
            let start = address / span(level) * span(level);
            let end = start + span(level);
            let word = &frames.words(table)[index(address, level)];
            let entry = Entry::from_bits(word.load(Relaxed));
            address = end.min(range.end());
            if entry.is_empty() {
                continue;
            }
            if gap.start() <= start && end <= gap.end() {
                // Hardware may set the accessed bit of the entry until now, and walk the table until the flush.
                word.store(0, Relaxed);
                *frames.metadata(table).table.lock() -= 1;
                self.take_subtree(entry.frame(), level - 1, start, taken);
            } else if let (true, Some(part)) =
                (level > 1, PageRange::between(start.max(range.start()), end.min(range.end())))
            {
                self.take_tables_below(entry.frame(), level - 1, part, gap, taken);
            }
        }
    }

    /// Hands out a table that was unhooked, and all tables below it.
    fn take_subtree(
        &self,
        table: FrameNumber,
        level: usize,
        start: u64,
        taken: &mut impl FnMut(u64, u64, FrameNumber),
    ) {
        let frames = self.environment.frames();
        if level > 0 && *frames.metadata(table).table.lock() > 0 {
            for (index, word) in frames.words(table).iter().enumerate() {
                let entry = Entry::from_bits(load_unhooked(word));
                if !entry.is_empty() {
                    self.take_subtree(entry.frame(), level - 1, start + index as u64 * span(level), taken);
                }
            }
        }
        debug_assert!(level > 0 || *frames.metadata(table).table.lock() == 0, "a table in use was taken out");
        if level == 0 && self.own_tables.are_there() {
            self.own_tables.unlink(start);
        }
        taken(start, span(level + 1), table);
    }
}

/// What is visited: a leaf table, or the entry of a large page.
pub(crate) enum Mapping<'m, 'a, E: Environment> {
    Leaf(&'m mut Leaf<'a, E>),
    Large(&'m mut Large<'a, E>),
}

/// Where a walk to the entry of a small page ends.
pub(crate) enum Lowest {
    /// At the entry that leads to its leaf table.
    Leaf(Entry),
    /// At the entry of a large page, and the table that this is in.
    Large { table: FrameNumber, entry: Entry },
    /// Too early.
    Missing(Missing),
}

/// Where a walk ended too early: the table whose entry is empty, and that table's level.
pub(crate) struct Missing {
    table: FrameNumber,
    level: usize,
}

impl<E: Environment> Drop for PageTable<E> {
    /// Frees all tables. No flush: the last owner of an address space goes only when no CPU has it loaded, so no walker
    /// can be in these tables, and cached translations were made unreachable when the CPUs loaded other roots.
    fn drop(&mut self) {
        if !self.owns {
            return;
        }
        let (environment, root) = (self.environment.clone(), self.root);
        let mut release = |_, _, table| environment.frames().release(environment.current_cpu(), table);
        for (index, word) in environment.frames().words(root)[..USER_ENTRIES].iter().enumerate() {
            let entry = Entry::from_bits(load_unhooked(word));
            if !entry.is_empty() {
                debug_assert!(!entry.has(Bits::HUGE));
                self.take_subtree(
                    entry.frame(),
                    ROOT_LEVEL - 1,
                    index as u64 * span(ROOT_LEVEL),
                    &mut release,
                );
            }
        }
        environment.frames().release(environment.current_cpu(), root);
    }
}
