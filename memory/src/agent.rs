//! In the checkers' build only: those who find a page by the reverse way.
//!
//! Reclaim, writeback, migration and truncation by an object's mappings come to an entry without the area lock, under the lock
//! of places (`relocation.rs`) and its table's lock. What others do for their sake could be left out without any test that
//! notices, if none of them were here. So the checkers have these.

use core::ops::Range;

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;
use crate::range::{PAGE_SIZE, PageRange, round_down};
use crate::unmap::Guards;

impl<E: Environment> AddressSpace<E> {
    /// Takes out the page that is at one of these addresses, and is looked for in this order: empties its entry, flushes that
    /// address, and frees the frame. (What reclaim and truncation do.)
    pub fn evict(&self, addresses: &[u64]) {
        let _stays = self.places.read();
        let _ = addresses.iter().any(|address| self.evict_at(*address));
    }

    /// Whether a page was there to take out.
    fn evict_at(&self, address: u64) -> bool {
        let page = round_down(address);
        let Some(part) = PageRange::between(page, page + PAGE_SIZE) else { return false };
        let Some(mut leaf) = self.tables_in_place.leaf(page) else { return false };
        if !leaf.entry(page).holds_page() {
            return false;
        }
        let mut changes = self.changes_under_lock(Cause::Madvise);
        self.zap_leaf(&mut leaf, part, Guards::Go, &mut changes);
        changes.finish();
        true
    }

    /// Takes the page at an address as clean: from here on a store must fault first, and the contents as they are now go to a
    /// disk. (What writeback does.)
    pub fn clean(&self, address: u64) {
        let _stays = self.places.read();
        let page = round_down(address);
        let Some(mut leaf) = self.tables_in_place.leaf(page) else { return };
        let mut changes = self.changes_under_lock(Cause::Mprotect);
        if !leaf.entry(page).holds_page() {
            return;
        }
        if let Some((old, new)) = leaf.update(page, |old| Some(old.without(Bits::WRITABLE | Bits::DIRTY))) {
            changes.changed(&leaf, page, old, new);
            changes.finish();
            crate::sync::frame_copied(new.frame());
        }
    }

    /// Takes out the page at an address, and then its leaf table, in which nothing else is. (What Linux does to the tables of
    /// a file when it puts large pages in their place.)
    ///
    /// A fault that goes on meanwhile would not look again whether its table is still there, so there must be none.
    pub fn retract(&self, address: u64) {
        let _alone = self.places.write();
        let tables = &self.tables_in_place;
        if !self.evict_at(address) {
            return;
        }
        let table = tables.replace_upper(address, 1, Entry::EMPTY);
        let span = crate::page_table::LEAF_SPAN;
        let mut changes = self.changes(Cause::Madvise);
        changes.table_taken(address / span * span, span, table.frame());
        changes.finish();
    }
}

impl<E: Environment> MemoryObject<E> {
    /// Takes the marks of being used from these pages' entries. (What a look does before it decides which pages go.)
    pub fn age(&self, pages: Range<u64>) {
        let candidates = self.reproducible(pages);
        let mut batch = PageBatch::new(self.environment(), Cause::Reclaim);
        self.look_at_entries(&candidates, &mut batch, |_| false);
        batch.finish();
    }
}
