//! Who maps an object where: the way back from a page to the entries that map it.
//!
//! Each object keeps a list of the areas that show it, private ones too. An area is entered when it joins an address space, its
//! entry follows the area's ends, and it goes when the area goes ([`Registration`]).
//!
//! Whoever comes this way (truncation, cleaning, reclaim) has no area lock. What it may rely on instead:
//!
//! * **Tables stay.** While the list is held, no table that maps a listed range is freed: an operation that removes areas takes
//!   them off the list, for which it waits, before it unhooks tables.
//! * **Nothing that is still reachable is missed.** An operation that empties entries for good enters its space as
//!   [leaving](Leaving) before it takes areas off the list, until its flush is over. Walks meet it (`page_batch`).
//! * **No entry is missed.** An entry is emptied before its area leaves the list. One that moves (`relocation`) does so while the list is
//!   held exclusively, until the flush is over; else a walk could look at the new place too early and at the old one too late. A child's area is entered
//!   before its entries are copied, and behind its parent's, and walks go in this order.
//! * A page fault may add an entry behind a walk's back, as it works under the table's lock alone. What that means, each walk says.
//!
//! Locks: an area lock, then a list, then table locks. A list may be held while a flush is waited for.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use lock_api::{RwLock, RwLockWriteGuard};

use crate::address_space::AddressSpace;
use crate::area::object_page;
use crate::backing::BackingRef;
use crate::entry::Entry;
use crate::environment::Environment;
use crate::leaf::Leaf;
use crate::page_batch::PageBatch;
use crate::range::{PAGE_SIZE, PageRange};

/// The areas that show an object.
pub(crate) struct Mappings<E: Environment>(RwLock<E::AreaLock, List<E>>);

/// In the order in which they were entered.
pub(crate) struct List<E: Environment> {
    next: u64,
    entered: Vec<Mapping<E>>,
    /// Spaces from which areas are being removed.
    leaving: Vec<(u64, Weak<AddressSpace<E>>)>,
}

/// One area. The page at address A is the object's page A / 4096 + `distance` (wrapping).
struct Mapping<E: Environment> {
    ticket: u64,
    space: Weak<AddressSpace<E>>,
    range: PageRange,
    distance: u64,
    is_locked: bool,
}

/// What a part of a table shows of an object.
pub(crate) struct Shown {
    pub(crate) part: PageRange,
    first_page: u64,
    /// The pages may not be taken back (`mlock`).
    pub(crate) is_locked: bool,
}

impl Shown {
    /// The object's page at an address in the part.
    pub(crate) fn page(&self, address: u64) -> u64 {
        self.first_page + (address - self.part.start()) / PAGE_SIZE
    }
}

impl<E: Environment> Mappings<E> {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(List { next: 0, entered: Vec::new(), leaving: Vec::new() }))
    }

    /// Whether nothing shows the object, nor may be reached through what showed it.
    pub(crate) fn is_empty(&self) -> bool {
        let list = self.0.read();
        list.entered.is_empty() && list.leaving.is_empty()
    }

    /// How many areas show the object.
    pub(crate) fn count(&self) -> usize {
        self.0.read().entered.len()
    }

    /// Every space that shows the object somewhere, and where.
    pub(crate) fn places(&self) -> Vec<(Arc<AddressSpace<E>>, PageRange)> {
        let list = self.0.read();
        list.entered.iter().filter_map(|mapping| Some((mapping.space.upgrade()?, mapping.range))).collect()
    }

    /// Keeps all walks out.
    pub(crate) fn exclusive(&self) -> RwLockWriteGuard<'_, E::AreaLock, List<E>> {
        self.0.write()
    }

    /// Visits every locked leaf table that shows some of these pages (ranges in their order), on behalf of a batch.
    pub(crate) fn for_each_leaf(
        &self,
        pages: &[Range<u64>],
        batch: &mut PageBatch<'_, E>,
        mut visit: impl FnMut(&mut PageBatch<'_, E>, &Arc<AddressSpace<E>>, &mut Leaf<'_, E>, Shown),
    ) {
        // Dropped after the list is released: the last reference to a space takes its areas off lists, this one too.
        let mut visited = Vec::new();
        let list = self.0.read();
        for mapping in &list.entered {
            let mut parts =
                pages.iter().filter_map(|pages| part(mapping.range, mapping.distance, pages)).peekable();
            // A space that is on its way out is one in which nothing will ever run again.
            if parts.peek().is_some()
                && let Some(space) = mapping.space.upgrade()
            {
                for part in parts {
                    space.tables_in_place.for_each_leaf(part, |leaf, part| {
                        batch.meet(&space);
                        let first_page = object_page(part.start(), mapping.distance);
                        let shown = Shown { part, first_page, is_locked: mapping.is_locked };
                        visit(batch, &space, leaf, shown);
                    });
                }
                visited.push(space);
            }
        }
        for space in list.leaving.iter().filter_map(|(_, space)| space.upgrade()) {
            batch.meet(&space);
            visited.push(space);
        }
    }
}

impl<E: Environment> Mappings<E> {
    /// Visits the entries that hold a page in all listed areas, for who only counts: entries may change behind its back.
    pub(crate) fn for_each_entry(&self, mut visit: impl FnMut(u64, Entry)) {
        // Dropped after the list is released, as above.
        let mut visited = Vec::new();
        let list = self.0.read();
        for mapping in &list.entered {
            let Some(space) = mapping.space.upgrade() else { continue };
            space.tables_in_place.for_each_leaf(mapping.range, |leaf, part| {
                leaf.used_pages(part)
                    .for_each(|(address, entry)| visit(object_page(address, mapping.distance), entry));
            });
            visited.push(space);
        }
    }
}

impl<E: Environment> List<E> {
    /// Where the area of that ticket is. (Tickets ascend, and lists are short: a tree cost more.)
    fn position(&self, ticket: u64) -> Option<usize> {
        self.entered.binary_search_by_key(&ticket, |mapping| mapping.ticket).ok()
    }
}

/// The addresses of an area, with that distance from its object's pages, that show some of these.
fn part(area: PageRange, distance: u64, pages: &Range<u64>) -> Option<PageRange> {
    let first = object_page(area.start(), distance);
    let address = |page: u64| {
        let pages = page.saturating_sub(first).min(area.pages());
        area.start() + pages * PAGE_SIZE
    };
    PageRange::between(address(pages.start), address(pages.end))
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
        is_locked: bool,
    ) -> Option<Self> {
        let mut list = backing.object()?.mappings().exclusive();
        let ticket = list.next;
        list.next += 1;
        list.entered.push(Mapping { ticket, space: space.clone(), range, distance, is_locked });
        drop(list);
        Some(Self { backing: backing.clone(), ticket })
    }

    /// The area has other ends now, or is locked, or is no longer.
    pub(crate) fn follow(&self, range: PageRange, is_locked: bool) {
        let Some(object) = self.backing.object() else { return };
        let mut list = object.mappings().exclusive();
        if let Some(index) = list.position(self.ticket) {
            list.entered[index].range = range;
            list.entered[index].is_locked = is_locked;
        }
    }
}

impl<E: Environment> Drop for Registration<E> {
    fn drop(&mut self) {
        let Some(object) = self.backing.object() else { return };
        let mut list = object.mappings().exclusive();
        let left = list.position(self.ticket).map(|index| list.entered.remove(index));
        debug_assert!(left.is_some(), "an area was on no list");
    }
}

/// A space from which an area that shows an object is being removed, until this is dropped, which is after the flush.
pub(crate) struct Leaving<E: Environment> {
    backing: BackingRef<E>,
    ticket: u64,
}

impl<E: Environment> Leaving<E> {
    pub(crate) fn enter(backing: &BackingRef<E>, space: &Weak<AddressSpace<E>>) -> Option<Self> {
        let mut list = backing.object()?.mappings().exclusive();
        let ticket = list.next;
        list.next += 1;
        list.leaving.push((ticket, space.clone()));
        drop(list);
        Some(Self { backing: backing.clone(), ticket })
    }
}

impl<E: Environment> Drop for Leaving<E> {
    fn drop(&mut self) {
        if let Some(object) = self.backing.object() {
            object.mappings().exclusive().leaving.retain(|(ticket, _)| *ticket != self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x4000_0000;

    /// Which pages of an area of eight, which shows an object from `first` on, show some of these pages of it.
    fn shown(first: u64, pages: Range<u64>) -> Option<Range<u64>> {
        let area = PageRange::new(START, 8 * PAGE_SIZE).unwrap();
        let distance = first.wrapping_sub(START / PAGE_SIZE);
        let part = part(area, distance, &pages)?;
        let page = |address: u64| (address - START) / PAGE_SIZE;
        assert_eq!(object_page(part.start(), distance), pages.start.max(first));
        Some(page(part.start())..page(part.end()))
    }

    #[test]
    fn a_part_is_what_area_and_pages_have_in_common() {
        assert_eq!(shown(0, 0..8), Some(0..8));
        assert_eq!(shown(0, 2..5), Some(2..5));
        assert_eq!(shown(100, 102..105), Some(2..5));
        assert_eq!(shown(100, 0..101), Some(0..1));
        assert_eq!(shown(100, 107..u64::MAX), Some(7..8));
        assert_eq!(shown(100, 0..u64::MAX), Some(0..8));
    }

    #[test]
    fn there_is_none_beside_the_area() {
        for pages in [0..100, 108..109, 108..u64::MAX, 103..103] {
            assert_eq!(shown(100, pages.clone()), None, "{pages:?}");
        }
        // An area at an address below that of its object's page 0: the distance wraps the other way.
        assert_eq!(shown(START, 0..START), None);
        assert_eq!(shown(START, START + 1..u64::MAX), Some(1..8));
    }
}
