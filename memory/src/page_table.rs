//! The page tables of one address space: four levels, one lock per table.
//!
//! Nothing outside this module knows that there is one root: others ask for the locked leaf table of an address and
//! get a [`Leaf`], or walk all leaf tables of a range. (A later version may give CPUs upper levels of their own.)
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

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use lock_api::MutexGuard;

use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameNumber;
use crate::range::{PAGE_SIZE, PageRange};
use crate::sync::{AtomicU64, load_unhooked};

/// The root's level; leaves are level 0.
const ROOT_LEVEL: usize = 3;
/// Entries of the root that belong to user space.
const USER_ENTRIES: usize = 256;
/// Bytes that one leaf table maps.
pub(crate) const LEAF_SPAN: u64 = span(1);

/// Bytes that one entry of a table of this level maps.
pub(crate) const fn span(level: usize) -> u64 {
    PAGE_SIZE << (9 * level)
}

const fn index(address: u64, level: usize) -> usize {
    (address / span(level) % 512) as usize
}

/// The tables of one address space.
pub(crate) struct PageTable<E: Environment> {
    environment: E,
    root: FrameNumber,
    /// Whether the tables end with this.
    owns: bool,
}

/// One leaf table, locked.
pub(crate) struct Leaf<'a, E: Environment> {
    words: &'a [AtomicU64; 512],
    used: MutexGuard<'a, E::TableLock, u16>,
}

/// What [`Leaf::move_entries`] moved.
#[derive(Default)]
pub(crate) struct Moved {
    /// How many entries that hardware could use, or have cached.
    pub(crate) present: u16,
    /// How many others.
    pub(crate) absent: u16,
    /// From where to where the first were.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Moved {
    fn note(&mut self, old: Entry, address: u64) {
        if !old.is_present() {
            self.absent += 1;
            return;
        }
        if self.present == 0 {
            self.first = address;
        }
        self.last = address;
        self.present += 1;
    }

    fn count(&self) -> u16 {
        self.present + self.absent
    }
}

impl<'a, E: Environment> Leaf<'a, E> {
    /// The entry of the page that holds `address`.
    pub(crate) fn entry(&self, address: u64) -> Entry {
        Entry::from_bits(self.words[index(address, 0)].load(Acquire))
    }

    /// Exchanges an entry; what comes back is what hardware last made of the old one.
    pub(crate) fn replace(&mut self, address: u64, new: Entry) -> Entry {
        // AcqRel: a fresh frame's contents are stored before hardware or another walker can find the frame here.
        let old = Entry::from_bits(self.words[index(address, 0)].swap(new.bits(), AcqRel));
        *self.used = *self.used + u16::from(!new.is_empty()) - u16::from(!old.is_empty());
        old
    }

    /// Changes a non-empty entry into another in one step, so that no CPU ever finds it absent. Returns old and new;
    /// `None` if `change` wants none.
    pub(crate) fn update(
        &mut self,
        address: u64,
        change: impl Fn(Entry) -> Option<Entry>,
    ) -> Option<(Entry, Entry)> {
        let word = &self.words[index(address, 0)];
        let mut old = word.load(Acquire);
        loop {
            let new = change(Entry::from_bits(old))?;
            debug_assert!(old != 0 && !new.is_empty());
            match word.compare_exchange(old, new.bits(), AcqRel, Acquire) {
                Ok(_) => return Some((Entry::from_bits(old), new)),
                Err(found) => old = found,
            }
        }
    }

    /// Moves the entries of `part` to where `to` and the pages behind it are mapped: in `target`, or in this table too if that is
    /// `None`. Nothing is mapped there.
    pub(crate) fn move_entries(&mut self, part: PageRange, target: Option<&mut Self>, to: u64) -> Moved {
        let (mut moved, first) = (Moved::default(), index(part.start(), 0));
        let target_words = &target.as_ref().map_or(self.words, |target| target.words)[index(to, 0)..];
        let source_words = &self.words[first..][..part.pages() as usize];
        for (offset, (word, target_word)) in source_words.iter().zip(target_words).enumerate() {
            if word.load(Relaxed) == 0 {
                continue;
            }
            let old = word.swap(0, AcqRel);
            let found = target_word.swap(old, AcqRel);
            debug_assert_eq!(found, 0, "an entry was moved onto another");
            moved.note(Entry::from_bits(old), part.start() + offset as u64 * PAGE_SIZE);
            if moved.count() == *self.used {
                // There are no others in this table.
                break;
            }
        }
        if let Some(target) = target {
            *self.used -= moved.count();
            *target.used += moved.count();
        }
        moved
    }

    /// Whether no entry is in use.
    pub(crate) fn is_empty(&self) -> bool {
        *self.used == 0
    }

    /// The pages of `part`, which lies in this table, whose entries are not empty.
    pub(crate) fn used_pages(&self, part: PageRange) -> impl Iterator<Item = (u64, Entry)> + use<'a, E> {
        let words = self.words;
        let entries = &words[index(part.start(), 0)..][..part.pages() as usize];
        entries.iter().enumerate().filter_map(move |(offset, word)| {
            let entry = Entry::from_bits(word.load(Relaxed));
            (!entry.is_empty()).then_some((part.start() + offset as u64 * PAGE_SIZE, entry))
        })
    }
}

impl<E: Environment> PageTable<E> {
    /// Tables that map nothing in the user half.
    pub(crate) fn new(environment: &E) -> Result<Self, OutOfMemory> {
        let root = Self::allocate_table(environment)?;
        environment.fill_kernel_half(&environment.frames().words(root)[USER_ENTRIES..]);
        Ok(Self { environment: environment.clone(), root, owns: true })
    }

    /// The same tables again, for walks; they do not end with this.
    pub(crate) fn view(&self) -> Self {
        Self { environment: self.environment.clone(), root: self.root, owns: false }
    }

    /// What a CPU loads to use these tables.
    pub(crate) fn root_address(&self) -> u64 {
        self.root.address()
    }

    fn allocate_table(environment: &E) -> Result<FrameNumber, OutOfMemory> {
        let table = environment.frames().allocate_user(environment.current_cpu())?;
        environment.frames().zero(table);
        *environment.frames().metadata(table).table.lock() = 0;
        Ok(table)
    }

    /// The entry of `address` as it is now, without any lock: a hint, to be looked at again under the lock.
    pub(crate) fn peek(&self, address: u64) -> Entry {
        match self.leaf_number(address) {
            Ok(table) => {
                let word = &self.environment.frames().words(table)[index(address, 0)];
                Entry::from_bits(word.load(Acquire))
            }
            Err(_) => Entry::EMPTY,
        }
    }

    /// The locked leaf table of `address`, if there is one.
    pub(crate) fn leaf(&self, address: u64) -> Option<Leaf<'_, E>> {
        self.leaf_number(address).ok().map(|table| self.lock(table))
    }

    /// The locked leaf table of `address`, made now if there is none.
    pub(crate) fn leaf_or_create(&self, address: u64) -> Result<Leaf<'_, E>, OutOfMemory> {
        loop {
            match self.leaf_number(address) {
                Ok(table) => return Ok(self.lock(table)),
                Err(missing) => self.create_below(missing, address)?,
            }
        }
    }

    /// Visits every leaf table that overlaps `range`, locked one at a time, with the part of the range that it maps.
    /// Stops at the first error.
    pub(crate) fn try_for_each_leaf<X>(
        &self,
        range: PageRange,
        mut visit: impl FnMut(&mut Leaf<'_, E>, PageRange) -> Result<(), X>,
    ) -> Result<(), X> {
        let mut address = range.start();
        while address < range.end() {
            let (level, found) = match self.leaf_number(address) {
                Ok(table) => (1, Some(table)),
                Err(missing) => (missing.level, None),
            };
            let end = (address / span(level) + 1).saturating_mul(span(level)).min(range.end());
            if let (Some(table), Some(part)) = (found, PageRange::between(address, end)) {
                visit(&mut self.lock(table), part)?;
                self.environment.yield_if_needed();
            }
            address = end;
        }
        Ok(())
    }

    /// As [`PageTable::try_for_each_leaf`], for visits that cannot fail.
    pub(crate) fn for_each_leaf(&self, range: PageRange, mut visit: impl FnMut(&mut Leaf<'_, E>, PageRange)) {
        let result: Result<(), core::convert::Infallible> = self.try_for_each_leaf(range, |leaf, part| {
            visit(leaf, part);
            Ok(())
        });
        match result {
            Ok(()) => {}
        }
    }

    fn lock(&self, table: FrameNumber) -> Leaf<'_, E> {
        let frames = self.environment.frames();
        Leaf { words: frames.words(table), used: frames.metadata(table).table.lock() }
    }

    /// The leaf table of `address`, or the lowest table on the way to it.
    fn leaf_number(&self, address: u64) -> Result<FrameNumber, Missing> {
        self.table_number(address, 0)
    }

    /// The table of a level that maps `address`, or the lowest table on the way to it.
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
        old
    }

    /// Whether the table that an upper entry leads to has an entry in use.
    pub(crate) fn is_used(&self, upper: Entry) -> bool {
        *self.environment.frames().metadata(upper.frame()).table.lock() > 0
    }

    /// Where the reach of the lowest entry ends that is missing on the way to the leaf table of `address`; `None` if there is
    /// a leaf table.
    pub(crate) fn end_of_hole(&self, address: u64) -> Option<u64> {
        let missing = self.leaf_number(address).err()?;
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
        taken(start, span(level + 1), table);
    }
}

/// Where a walk ended too early: the table whose entry is empty, and that table's level.
struct Missing {
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
