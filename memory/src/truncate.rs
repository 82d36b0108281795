//! What becomes of mappings when their object grows shorter.
//!
//! The object first cuts its pages off (so that no fault brings one back), then all entries that map them are dropped,
//! private copies included, as on Linux: an access finds the object's end (`SIGBUS`), or fresh zeroes if the object has
//! grown again. Whoever maps it is found in the object's list, and no area lock is taken.
//!
//! * All spaces together are one batch, so there is one round of interrupts, over before the call returns.
//! * An operation that has emptied an entry and not flushed yet is met (`PageBatch::meet`): its flush is waited for as if it were
//!   our own. Else the call would return while a CPU still reads what was cut off.
//! * A page fault that got its page before that was cut finds under its table's lock that the object has been
//!   [cut](MemoryObject::cuts) since, and looks again. If it came first, the walk finds its entry under the same lock.

use core::slice;

use crate::environment::Environment;
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;

impl<E: Environment> MemoryObject<E> {
    /// Drops all entries that map pages from `first_page` on. To be called after the object has lost them, and before it may
    /// have others in their place. May sleep.
    pub fn forget_mapped(&self, first_page: u64) {
        if self.mappings().is_empty() {
            return;
        }
        let mut batch = PageBatch::concluding_absence(self.environment());
        self.mappings().for_each_leaf(
            slice::from_ref(&(first_page..u64::MAX)),
            &mut batch,
            |batch, space, leaf, shown| {
                for (address, _) in leaf.used_pages(shown.part) {
                    batch.take_out(space, leaf, address);
                }
            },
        );
        batch.finish();
    }
}
