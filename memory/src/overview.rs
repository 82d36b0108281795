//! What an address space looks like to who writes it out: its areas one by one, so that no list of all of them is made, and where in a range
//! there is anything at all.

use crate::address_space::AddressSpace;
use crate::area::{Area, AreaSnapshot};
use crate::environment::Environment;
use crate::page_table::Mapping;
use crate::range::PageRange;

impl<E: Environment> AddressSpace<E> {
    /// The first area that ends above an address.
    pub fn area_from(&self, address: u64) -> Option<AreaSnapshot> {
        self.shared().areas.first_ending_above(address).map(Area::snapshot)
    }

    /// The areas from the lowest on. Between two of them others may change the space: then none is told twice, and each as it was when it was its turn.
    pub fn areas(&self) -> impl Iterator<Item = AreaSnapshot> {
        let mut next = 0;
        core::iter::from_fn(move || {
            let area = self.area_from(next)?;
            next = area.range.end();
            Some(area)
        })
    }

    /// The first part of a range, a table's reach at most, of which a page is in memory or in a slot. What holds nothing is passed over table by table.
    pub fn first_used(&self, range: PageRange) -> Option<PageRange> {
        let used = self.shared().tables.try_for_each(range, |mapping, part| {
            let is_used = match mapping {
                Mapping::Leaf(leaf) => leaf.used_entries(part).next().is_some(),
                Mapping::Large(_) => true,
            };
            if is_used { Err(part) } else { Ok(()) }
        });
        used.err()
    }
}
