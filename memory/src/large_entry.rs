//! The locked entry of one large page: in the table above the leaves, under that table's lock.
//!
//! An entry in that table is empty, leads to a leaf table, or maps a large page. With the area lock held shared it goes from empty to one
//! of the two, and from a large page to a leaf table (a *split*, `split.rs`), or to empty; never from a leaf table to anything, so whoever
//! has found a leaf table keeps it. All but the making of a leaf table in an empty entry is done through this guard.
//!
//! **A table is put aside for each large page** when it is mapped, so that it can be split whenever it must be: taking memory away from
//! a program never fails for lack of memory. Tables put aside hang on the table that holds the large pages' entries, and no hardware has
//! ever seen them.
//!
//! **Two sizes of one address are never there together.** A large entry is emptied, and flushed, before small ones are put in its
//! place, and the other way round.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use lock_api::MutexGuard;

use crate::entry::{Entry, LARGE_FRAMES, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::frame::FrameNumber;
use crate::page_table::index;
use crate::range::PAGE_SIZE;
use crate::sync::{self, AtomicU64};

/// The entry of a large page, or an empty one, whose table is locked.
pub(crate) struct Large<'a, E: Environment> {
    environment: &'a E,
    table: FrameNumber,
    word: &'a AtomicU64,
    used: MutexGuard<'a, E::TableLock, u16>,
}

/// A large page's entry that was taken out, and the table that was put aside for it.
pub(crate) struct TakenOut {
    /// What the entry was.
    pub(crate) old: Entry,
    /// Never seen by hardware.
    pub(crate) aside: Option<FrameNumber>,
}

impl<'a, E: Environment> Large<'a, E> {
    /// The large page around `address`, in that table; `None` if there is none any more.
    pub(crate) fn lock(environment: &'a E, table: FrameNumber, address: u64) -> Option<Self> {
        Some(Self::locked(environment, table, address)).filter(|large| large.entry().is_large())
    }

    /// The entry for a large page around `address`, in that table; `None` if it is in use.
    pub(crate) fn lock_empty(environment: &'a E, table: FrameNumber, address: u64) -> Option<Self> {
        Some(Self::locked(environment, table, address)).filter(|large| large.entry().is_empty())
    }

    fn locked(environment: &'a E, table: FrameNumber, address: u64) -> Self {
        let frames = environment.frames();
        let used = frames.metadata(table).table.lock();
        Self { environment, table, word: &frames.words(table)[index(address, 1)], used }
    }

    /// The entry.
    pub(crate) fn entry(&self) -> Entry {
        Entry::from_bits(self.word.load(Acquire))
    }

    /// Changes the entry in one step, as [`Leaf::update`](crate::leaf::Leaf::update).
    pub(crate) fn update(&mut self, change: impl Fn(Entry) -> Option<Entry>) -> Option<(Entry, Entry)> {
        let mut old = self.word.load(Acquire);
        loop {
            let new = change(Entry::from_bits(old))?;
            match self.word.compare_exchange(old, new.bits(), AcqRel, Acquire) {
                Ok(_) => return Some((Entry::from_bits(old), new)),
                Err(found) => old = found,
            }
        }
    }

    /// Maps a large page in an empty entry.
    pub(crate) fn put(&mut self, page: Entry, aside: FrameNumber) {
        let frames = self.environment.frames();
        frames.put_aside(self.table, aside);
        // AcqRel: the page's contents are stored before hardware or another walker can find it here.
        let found = self.word.swap(page.bits(), AcqRel);
        debug_assert_eq!(found, 0, "a large page was mapped over something");
        *self.used += 1;
        frames.large_pages().note_mapped();
    }

    /// Empties the entry of a large page. What comes back is what hardware last made of it.
    pub(crate) fn take_out(&mut self) -> TakenOut {
        let frames = self.environment.frames();
        let old = Entry::from_bits(self.word.swap(0, AcqRel));
        debug_assert!(old.is_large(), "what was taken out is no large page");
        *self.used -= 1;
        frames.large_pages().note_unmapped();
        TakenOut { old, aside: frames.take_aside(self.table) }
    }

    /// Puts a table of the page's pieces in place of a large page that was taken out and, unless the table is to be hidden, flushed.
    pub(crate) fn put_pieces(&mut self, taken: TakenOut, is_hidden: bool) {
        debug_assert!(taken.aside.is_some(), "no table was put aside for a large page");
        let Some(table) = taken.aside else { return };
        let frames = self.environment.frames();
        for (index, word) in frames.words(table).iter().enumerate() {
            // Nobody else knows the table.
            sync::store_unhooked(word, taken.old.piece(index as u64 * PAGE_SIZE).bits());
        }
        frames.begin_table(table);
        *frames.metadata(table).table.lock() = LARGE_FRAMES as u16;
        let upper = Entry::table(table);
        let upper = if is_hidden { upper.hidden() } else { upper };
        // Release: the pieces before the table.
        self.word.store(upper.bits(), Release);
        *self.used += 1;
        frames.large_pages().note_split();
    }

    /// The table that the entry is in.
    pub(crate) fn table(&self) -> FrameNumber {
        self.table
    }
}

/// Lets hardware find a table that was hidden. Under the exclusive area lock, after the flush of the large page that was there.
pub(crate) fn reveal(upper: &AtomicU64) {
    let hidden = Entry::from_bits(upper.load(Acquire));
    debug_assert!(!hidden.is_empty() && !hidden.is_present() && !hidden.is_large());
    upper.store(hidden.revealed().bits(), Release);
}

/// Where the large page around an address begins.
pub(crate) const fn large_start(address: u64) -> u64 {
    address / LARGE_PAGE_SIZE * LARGE_PAGE_SIZE
}
