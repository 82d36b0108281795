//! One leaf table, locked: the entries of 512 pages.
//!
//! Entries change only under the table's lock. Hardware sets accessed and dirty bits meanwhile, so every change is an atomic
//! exchange, and the value that it *returned* is the one that counts.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use coherence::Sharers;
use lock_api::MutexGuard;

use crate::entry::Entry;
use crate::environment::Environment;
use crate::page_table::index;
use crate::range::{PAGE_SIZE, PageRange};
use crate::sync::AtomicU64;

/// One leaf table, locked.
pub(crate) struct Leaf<'a, E: Environment> {
    words: &'a [AtomicU64; 512],
    used: MutexGuard<'a, E::TableLock, u16>,
    is_hidden: bool,
    sharers: &'a Sharers,
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
    /// Locks the table that an entry of the level above leads to.
    pub(crate) fn lock(environment: &'a E, upper: Entry) -> Self {
        let (frames, table) = (environment.frames(), upper.frame());
        let used = frames.metadata(table).table.lock();
        let sharers = frames.sharers(table);
        Self { words: frames.words(table), used, is_hidden: !upper.is_present(), sharers }
    }

    /// The CPUs that have linked the table into upper tables of their own.
    pub(crate) fn sharers(&self) -> &'a Sharers {
        self.sharers
    }

    /// Whether hardware does not find the table yet (`cut.rs`): no CPU has anything of its entries.
    pub(crate) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

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

    /// Guards the page of an entry that holds none.
    pub(crate) fn guard_absent(&mut self, address: u64) {
        debug_assert!(!self.entry(address).holds_page());
        self.replace(address, Entry::GUARD);
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

    /// The pages of `part`, which lies in this table, whose entries hold one.
    pub(crate) fn used_pages(&self, part: PageRange) -> impl Iterator<Item = (u64, Entry)> + use<'a, E> {
        self.used_entries(part).filter(|(_, entry)| entry.holds_page())
    }

    /// As [`Leaf::used_pages`], with the guards of pages that are not there.
    pub(crate) fn used_entries(&self, part: PageRange) -> impl Iterator<Item = (u64, Entry)> + use<'a, E> {
        let words = self.words;
        let entries = &words[index(part.start(), 0)..][..part.pages() as usize];
        entries.iter().enumerate().filter_map(move |(offset, word)| {
            let entry = Entry::from_bits(word.load(Relaxed));
            (!entry.is_empty()).then_some((part.start() + offset as u64 * PAGE_SIZE, entry))
        })
    }
}
