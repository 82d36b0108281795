//! Locking memory: `mlock`.
//!
//! Nothing here ever leaves memory unless the program says so, so locking means two things: the pages are brought in
//! now, and the areas are marked, which `madvise` and `/proc` look at.

use alloc::vec::Vec;

use crate::address_space::AddressSpace;
use crate::area::AreaFlags;
use crate::environment::Environment;
use crate::error::Error;
use crate::range::PageRange;
use crate::rights::{Access, Rights};

impl<E: Environment> AddressSpace<E> {
    /// Marks a range as locked and, if asked to, brings its pages in.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole in the range (the mapped parts are marked), or pages that could not be had.
    pub fn lock(&self, range: PageRange, bring_in: bool) -> Result<(), Error> {
        self.mark(range, AreaFlags::LOCKED, true)?;
        if bring_in { self.bring_in_locked(range) } else { Ok(()) }
    }

    /// Marks all areas as locked and brings their pages in, as far as they can be had.
    pub fn lock_all(&self, bring_in: bool) {
        // Holes are no error here, and neither are pages that cannot be had, as on Linux.
        let _ = self.mark(PageRange::whole(), AreaFlags::LOCKED, true);
        if bring_in {
            let _ = self.bring_in_locked(PageRange::whole());
        }
    }

    /// Takes the marks away.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole in the range (the mapped parts are unmarked).
    pub fn unlock(&self, range: PageRange) -> Result<(), Error> {
        self.mark(range, AreaFlags::LOCKED, false)
    }

    /// Takes all marks away.
    pub fn unlock_all(&self) {
        let _ = self.mark(PageRange::whole(), AreaFlags::LOCKED, false);
    }

    fn bring_in_locked(&self, range: PageRange) -> Result<(), Error> {
        let parts: Vec<(PageRange, Access)> = {
            let layout = self.shared();
            let accessible = layout.areas.overlapping(range).filter(|area| !area.rights().is_empty());
            let part = |area: &crate::area::Area<E>| {
                // A private page is copied now rather than at its first store.
                let write = area.rights().contains(Rights::WRITE) && !area.is_shared();
                Some((area.range().intersection(&range)?, Access { write, execute: false }))
            };
            accessible.filter_map(part).collect()
        };
        for (part, access) in parts {
            self.populate(part, access).map_err(|_| Error::OutOfMemory)?;
        }
        Ok(())
    }
}
