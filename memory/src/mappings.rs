//! Who maps an object where: the way back from a page to the entries that map it.
//!
//! Each object keeps a list of the areas that show it, private ones too. An area is entered when it joins an address space, its
//! entry follows the area's ends, and it goes when the area goes ([`Registration`]).
//!
//! Whoever comes this way (truncation, cleaning, reclaim) has no area lock. What it may rely on instead:
//!
//! * **Tables stay.** While the list is held, no table that maps a listed range is freed: an operation that removes areas takes
//!   them off the list, for which it waits, before it unhooks tables.
//! * **No entry is missed.** An entry is emptied before its area leaves the list. One that moves (`relocation`) does so while the list is
//!   held exclusively, until the flush is over; else a walk could look at the new place too early and at the old one too late. A child's area is entered
//!   before its entries are copied, and behind its parent's, and walks go in this order.
//! * A page fault may add an entry behind a walk's back, as it works under the table's lock alone. What that means, each walk says.
//!
//! Locks: an area lock, then a list, then table locks. A list may be held while a flush is waited for.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use lock_api::{RwLock, RwLockWriteGuard};

use crate::address_space::AddressSpace;
use crate::area::object_page;
use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::range::{PAGE_SIZE, PageRange};

/// The areas that show an object.
pub(crate) struct Mappings<E: Environment>(RwLock<E::AreaLock, List<E>>);

/// In the order in which they were entered.
pub(crate) struct List<E: Environment> {
    next: u64,
    entered: BTreeMap<u64, Mapping<E>>,
}

/// One area. The page at address A is the object's page A / 4096 + `distance` (wrapping).
struct Mapping<E: Environment> {
    space: Weak<AddressSpace<E>>,
    range: PageRange,
    distance: u64,
}

impl<E: Environment> Mappings<E> {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(List { next: 0, entered: BTreeMap::new() }))
    }

    /// Whether no area shows the object.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().entered.is_empty()
    }

    /// Keeps all walks out.
    pub(crate) fn exclusive(&self) -> RwLockWriteGuard<'_, E::AreaLock, List<E>> {
        self.0.write()
    }

    /// Visits every range of addresses that shows some of these pages.
    pub(crate) fn for_each(
        &self,
        pages: Range<u64>,
        mut visit: impl FnMut(&Arc<AddressSpace<E>>, PageRange),
    ) {
        // Dropped after the list is released: the last reference to a space takes its areas off lists, this one too.
        let mut visited = Vec::new();
        let list = self.0.read();
        for mapping in list.entered.values() {
            // A space that is on its way out is one in which nothing will ever run again.
            if let Some(part) = mapping.part(&pages)
                && let Some(space) = mapping.space.upgrade()
            {
                visit(&space, part);
                visited.push(space);
            }
        }
    }
}

impl<E: Environment> Mapping<E> {
    /// The addresses of this mapping that show some of these pages.
    fn part(&self, pages: &Range<u64>) -> Option<PageRange> {
        let first = object_page(self.range.start(), self.distance);
        let address = |page: u64| {
            let pages = page.saturating_sub(first).min(self.range.pages());
            self.range.start() + pages * PAGE_SIZE
        };
        PageRange::between(address(pages.start), address(pages.end))
    }
}

/// An area's place in the list of its object, which ends when this is dropped.
pub(crate) struct Registration<E: Environment> {
    backing: BackingRef<E>,
    ticket: u64,
}

impl<E: Environment> Registration<E> {
    /// Enters an area, if it shows an object that keeps a list.
    pub(crate) fn enter(
        backing: &BackingRef<E>,
        space: &Weak<AddressSpace<E>>,
        range: PageRange,
        distance: u64,
    ) -> Option<Self> {
        let mut list = backing.object()?.mappings().exclusive();
        let ticket = list.next;
        list.next += 1;
        list.entered.insert(ticket, Mapping { space: space.clone(), range, distance });
        drop(list);
        Some(Self { backing: backing.clone(), ticket })
    }

    /// The area has other ends now.
    pub(crate) fn follow(&self, range: PageRange) {
        if let Some(object) = self.backing.object()
            && let Some(mapping) = object.mappings().exclusive().entered.get_mut(&self.ticket)
        {
            mapping.range = range;
        }
    }
}

impl<E: Environment> Drop for Registration<E> {
    fn drop(&mut self) {
        if let Some(object) = self.backing.object() {
            let left = object.mappings().exclusive().entered.remove(&self.ticket);
            debug_assert!(left.is_some(), "an area was on no list");
        }
    }
}
