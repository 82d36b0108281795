//! In the checkers' build only: whoever finds a page by the reverse way.
//!
//! Reclaim, migration and truncation by an object's mappings will come to an entry without the area lock, under its table's lock
//! alone. None of them is here yet, so what `remap` does for their sake (its flush is under both tables' locks) could be left out
//! without any test that notices. So the checkers have this one.

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::environment::Environment;
use crate::range::{PAGE_SIZE, PageRange, round_down};

impl<E: Environment> AddressSpace<E> {
    /// Takes out the page at an address, if one is there: empties its entry, flushes that address, and frees the frame.
    ///
    /// The leaf table of the address must stay while this runs.
    pub fn evict(&self, address: u64) {
        let page = round_down(address);
        let Some(part) = PageRange::between(page, page + PAGE_SIZE) else { return };
        let Some(mut leaf) = self.tables_in_place.leaf(page) else { return };
        let mut changes = self.changes_under_lock(Cause::Madvise);
        self.zap_leaf(&mut leaf, part, &mut changes);
        changes.finish();
    }
}
