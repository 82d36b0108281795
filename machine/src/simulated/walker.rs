//! What a page walker does: it reads tables as they are in memory, sets A, and caches what it went through.
//!
//! Of a large page it caches what is one translation on hardware as one piece for each page in play. An invalidation at any address in
//! it drops them all, so that a machine which has cached smaller pieces does nothing that this one does not.

use explorer::narrate_of;
use memory::PAGE_SIZE;

use super::caches::{
    ACCESSED, Caches, DIRTY, FRAME, LARGE, PRESENT, TABLE_REACH, Translation, Upper, WRITABLE,
};
use super::machine::{Hidden, Machine};
use super::past_bug::HardwareMistake;

pub(super) const ROOT_LEVEL: usize = 3;

/// What one entry of a table of this level maps, in bytes.
pub(super) const fn reach(level: usize) -> u64 {
    PAGE_SIZE << (9 * level)
}

const fn index(address: u64, level: usize) -> u64 {
    address / reach(level) % 512
}

/// What a walk for an access came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// An entry, now cached if it allows the access.
    Found,
    /// No entry that is present.
    Missing,
}

impl Machine {
    /// The entry of a page, as the tables in memory have it.
    pub(super) fn entry_in_memory(&self, root: u64, page: u64) -> u64 {
        let Some(table) = self.table_in_memory(root, page, 1) else { return 0 };
        let upper = self.word(table + index(page, 1) * 8).peek();
        match upper & (PRESENT | LARGE) {
            PRESENT => self.word((upper & FRAME) + index(page, 0) * 8).peek(),
            0 | LARGE => 0,
            _ => piece(upper, page),
        }
    }

    /// The table of a level that maps a page, as the tables in memory have it.
    pub(super) fn table_in_memory(&self, root: u64, page: u64, lowest: usize) -> Option<u64> {
        (lowest + 1..=ROOT_LEVEL).rev().try_fold(root, |table, level| {
            let entry = self.word(table + index(page, level) * 8).peek();
            (entry & (PRESENT | LARGE) == PRESENT).then_some(entry & FRAME)
        })
    }

    /// Whether a walk of that CPU for that page would leave anything in its caches that is not there yet.
    pub(super) fn could_walk(&self, caches: &Caches, page: u64) -> bool {
        if caches.root == 0 {
            return false;
        }
        if caches.translations.contains_key(&(caches.tag, page)) {
            // A walker may go for a page of another size all the same.
            return caches.is_large(page)
                && self.table_in_memory(caches.walked, page, 0).is_some()
                && self.entry_in_memory(caches.walked, page) & PRESENT != 0;
        }
        let (level, table) = start(caches, page);
        // To walk through a freed table is wrong whatever is found there.
        freed(caches, level, page).is_some()
            || self.word(table + index(page, level) * 8).peek() & PRESENT != 0
    }

    /// Walks for a page on behalf of that CPU, and caches all it goes through: for a store only what allows one.
    pub(super) fn walk(&self, hidden: &mut Hidden, cpu: usize, page: u64, stores: bool) -> Walk {
        let moved = moved(&hidden.caches[cpu], page);
        let Some((word, large)) = self.walk_to_entry(hidden, cpu, page) else { return Walk::Missing };
        let entry = word.peek();
        if entry & PRESENT == 0 {
            return Walk::Missing;
        }
        if stores && entry & WRITABLE == 0 {
            return Walk::Found;
        }
        // A before caching: in one locked step with the look at the entry. Not every device does so.
        if Some(cpu) != self.device() {
            word.poke(entry | ACCESSED);
        }
        let others =
            self.build.pages.iter().copied().filter(|other| other / TABLE_REACH == page / TABLE_REACH);
        let others: Vec<u64> = others.filter(|other| large && *other != page).collect();
        for page in std::iter::once(page).chain(others) {
            let entry = if large { piece(entry, page) } else { entry };
            self.cache(hidden, cpu, page, (entry | ACCESSED, large), moved.clone());
        }
        Walk::Found
    }

    /// Caches what a walk has found.
    fn cache(
        &self,
        hidden: &mut Hidden,
        cpu: usize,
        page: u64,
        (entry, large): (u64, bool),
        moved: Option<String>,
    ) {
        let caches = &mut hidden.caches[cpu];
        let mixed = caches.has_other_size(page, large).then(|| {
            format!(
                "D4, one order: CPU {cpu} had a page of another size cached there, and may use either of the two"
            )
        });
        let translation = Translation {
            root: caches.root,
            entry,
            large,
            dead: moved.or(mixed),
            dead_for_stores: None,
            copied: None,
            older_than: Vec::new(),
            outdated: false,
        };
        let (root, frame) = (translation.root, translation.frame());
        caches.translations.insert((caches.tag, page), translation);
        let owned = hidden.oracle.is_owned(frame);
        hidden.oracle.filled(root, page, frame, &mut hidden.caches);
        if !owned {
            // The tables lead to a frame that nobody owns: whoever uses this is wrong from the start.
            let why =
                format!("D1, frame safety: frame {:x} has no owner, though the tables have it", frame >> 12);
            let tag = hidden.caches[cpu].tag;
            if let Some(translation) = hidden.caches[cpu].translations.get_mut(&(tag, page)) {
                translation.dead = Some(why);
            }
        }
    }

    /// Walks to the entry of a page; says whether that is a large page's. `None` if an upper level is not present.
    fn walk_to_entry(
        &self,
        hidden: &mut Hidden,
        cpu: usize,
        page: u64,
    ) -> Option<(&explorer::AtomicU64, bool)> {
        match self.walk_down(hidden, cpu, page)? {
            (0, leaf) => Some((self.word(leaf + index(page, 0) * 8), false)),
            (_, table) => Some((self.word(table + index(page, 1) * 8), true)),
        }
    }

    /// Walks the upper levels from the lowest that is cached, to the table of the entry, of which it says the level; `None` if one is
    /// not present.
    fn walk_down(&self, hidden: &mut Hidden, cpu: usize, page: u64) -> Option<(usize, u64)> {
        let caches = &hidden.caches[cpu];
        let (mut level, mut table) = start(caches, page);
        let (moved, root, walked) = (moved(caches, page), caches.root, caches.walked);
        if let Some(why) = freed(caches, level, page) {
            let reason = if level < ROOT_LEVEL { "an upper level that it has cached" } else { "its root" };
            let who = hidden.oracle.name(cpu);
            hidden.found(format!(
                "D1, frame safety: the walker of {who} goes through {reason}, a page table at {table:#x}, but {why}"
            ));
        }
        while level > 0 {
            let entry = self.word(table + index(page, level) * 8).peek();
            if entry & PRESENT == 0 {
                return None;
            }
            if level == 1 && entry & LARGE != 0 {
                return Some((1, table));
            }
            level -= 1;
            table = entry & FRAME;
            let caches = &mut hidden.caches[cpu];
            let upper = Upper { root, walked, table, freed: None, moved: moved.clone() };
            caches.uppers.insert((caches.tag, level, page / reach(level + 1)), upper);
            if !hidden.oracle.is_owned(table) {
                let who = hidden.oracle.name(cpu);
                hidden.found(format!(
                    "D1, frame safety: the walker of {who} comes to a page table at {table:#x} that nobody owns"
                ));
            }
        }
        Some((0, table))
    }

    /// Sets D for a store through a cached entry that does not have it, in a locked step that looks at the entry in memory again.
    /// Says whether that still allows the store.
    pub(super) fn set_dirty(&self, hidden: &mut Hidden, cpu: usize, page: u64) -> bool {
        let Some((word, large)) = self.walk_to_entry(hidden, cpu, page) else { return false };
        let found = word.peek();
        let entry = if large { piece(found, page) } else { found };
        let caches = &mut hidden.caches[cpu];
        let Some(translation) = caches.translation(page) else { return false };
        let finds =
            entry & (PRESENT | WRITABLE) == PRESENT | WRITABLE && entry & FRAME == translation.frame();
        let marks_blindly = self.build.mistake == Some(HardwareMistake::MarksDirtyBlindly)
            && entry & PRESENT != 0
            && entry & FRAME == translation.frame();
        if finds || marks_blindly {
            word.poke(found | DIRTY | ACCESSED);
            translation.entry |= DIRTY;
        }
        if finds {
            // For stores it is as good as one that is walked now.
            (translation.dead_for_stores, translation.copied) = (None, None);
        }
        finds || marks_blindly
    }

    /// A walker runs ahead of its CPU.
    pub(super) fn walk_ahead(&self, cpu: usize, page: u64) {
        let found = self.walk(&mut self.hidden(), cpu, page, false);
        narrate_of(cpu, || format!("walker goes ahead for {page:#x}: {found:?}"));
    }
}

/// What a large page's entry says of the small page at an address.
fn piece(entry: u64, page: u64) -> u64 {
    (entry & !LARGE) + page % TABLE_REACH
}

/// Who freed the table at which a walk for a page starts, if somebody did.
fn freed(caches: &Caches, level: usize, page: u64) -> Option<String> {
    match caches.uppers.get(&(caches.tag, level, page / reach(level + 1))) {
        Some(upper) if level < ROOT_LEVEL => upper.freed.clone(),
        _ => caches.root_freed.clone(),
    }
}

/// Why what a walk for a page finds may not be used, if it starts at a table that has moved.
fn moved(caches: &Caches, page: u64) -> Option<String> {
    let (level, _) = start(caches, page);
    caches.uppers.get(&(caches.tag, level, page / reach(level + 1))).and_then(|upper| upper.moved.clone())
}

/// Where a walk for a page starts: the lowest table that is cached, or the root.
fn start(caches: &Caches, page: u64) -> (usize, u64) {
    let cached = (0..ROOT_LEVEL).find_map(|level| {
        let upper = caches.uppers.get(&(caches.tag, level, page / reach(level + 1)))?;
        Some((level, upper.table))
    });
    cached.unwrap_or((ROOT_LEVEL, caches.walked))
}
