//! What becomes of mappings when their object grows shorter.
//!
//! The object first cuts its pages off (so that no fault brings one back), then every address space that maps it drops
//! its entries for them, private copies included, as on Linux: an access finds the object's end (`SIGBUS`), or fresh
//! zeroes if the object has grown again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::area::{Area, Source, object_page};
use crate::environment::Environment;
use crate::object::MemoryObject;
use crate::range::{PAGE_SIZE, PageRange};

impl<E: Environment> MemoryObject<E> {
    /// Drops all entries that map pages from `first_page` on. To be called after the object has lost them.
    pub fn forget_mapped(&self, first_page: u64) {
        if self.mappings().is_empty() {
            return;
        }
        let mut spaces: Vec<Arc<AddressSpace<E>>> = Vec::new();
        self.mappings().for_each(first_page..u64::MAX, |space, _| {
            if !spaces.iter().any(|known| Arc::ptr_eq(known, space)) {
                spaces.push(space.clone());
            }
        });
        for space in spaces {
            space.drop_object_pages(self, first_page);
        }
    }
}

impl<E: Environment> AddressSpace<E> {
    fn drop_object_pages(&self, object: &MemoryObject<E>, first_page: u64) {
        // Exclusive: a fault that got its page from the object before that was cut has installed it by now.
        let layout = self.exclusive();
        let mut changes = self.changes(Cause::Truncate);
        let lost: Vec<PageRange> =
            layout.areas.iter().filter_map(|area| area.range_behind(object, first_page)).collect();
        for range in lost {
            self.zap(&layout.tables, range, &mut changes);
        }
        // Before the area lock is released, as everywhere.
        changes.finish();
    }
}

impl<E: Environment> Area<E> {
    /// The part of the area that maps pages of `object` from `first_page` on.
    fn range_behind(&self, object: &MemoryObject<E>, first_page: u64) -> Option<PageRange> {
        let Source::Object { backing, distance } = &self.source else { return None };
        if !backing.object().is_some_and(|mine| core::ptr::eq(mine, object)) {
            return None;
        }
        let kept = first_page.saturating_sub(object_page(self.start(), *distance));
        let start = kept.checked_mul(PAGE_SIZE).and_then(|bytes| self.start().checked_add(bytes))?;
        PageRange::between(start.min(self.end()), self.end())
    }
}
