//! Which pages are in memory: `mincore`.

use crate::address_space::AddressSpace;
use crate::area::{Source, object_page};
use crate::environment::Environment;
use crate::error::Error;
use crate::range::{PAGE_SIZE, PageRange};

impl<E: Environment> AddressSpace<E> {
    /// Says of each page of a range whether an access to it would find it in memory. `answer` has one element for
    /// each page (more are left alone).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if part of the range is not mapped.
    pub fn incore(&self, range: PageRange, answer: &mut [bool]) -> Result<(), Error> {
        let layout = self.shared();
        if !layout.areas.is_covered(range) {
            return Err(Error::OutOfMemory);
        }
        for area in layout.areas.overlapping(range) {
            let Some(part) = area.range().intersection(&range) else {
                continue;
            };
            let mut page = part.start();
            while page < part.end() {
                let is_in_object = || match &area.source {
                    Source::Anonymous => false,
                    Source::Object { backing, distance } => backing.is_resident(object_page(page, *distance)),
                };
                let index = ((page - range.start()) / PAGE_SIZE) as usize;
                if let Some(slot) = answer.get_mut(index) {
                    let entry = layout.tables.peek(page);
                    let is_in_cache =
                        || entry.slot().is_some_and(|slot| self.environment.swap().is_cached(slot));
                    *slot = entry.holds_page() || is_in_cache() || is_in_object();
                }
                page += PAGE_SIZE;
            }
        }
        Ok(())
    }
}
