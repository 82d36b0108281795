//! Pages are brought in before anybody asks for them: `MAP_POPULATE`, `mlock`, `MADV_POPULATE_READ` and `MADV_POPULATE_WRITE`.
//!
//! It is as if the program touched page after page. No lock is held between two of them, so another thread may unmap, protect or
//! truncate what is still to come. Who must know ([`AddressSpace::populate`], `madvise`) is told; a mapping that was asked to come with its
//! pages, and a locked one, stand as they are: what cannot be had is left out, and the next area gone on with.

use crate::address_space::AddressSpace;
use crate::area::AreaFlags;
use crate::environment::Environment;
use crate::error::{Error, Fault};
use crate::monitor::Origin;
use crate::range::{PAGE_SIZE, PageRange};
use crate::rights::{Access, Rights};

impl<E: Environment> AddressSpace<E> {
    /// Brings in all pages of a range, as if each were accessed.
    ///
    /// # Errors
    /// The first fault that could not be resolved; pages before it stay.
    pub fn populate(&self, range: PageRange, access: Access) -> Result<(), Fault> {
        self.populate_until(range, access).map_err(|(_, fault)| fault)
    }

    /// Brings in the pages of all areas in a range, each as its rights allow, but not of those whose pages are left to faults.
    ///
    /// # Errors
    /// The first error; what comes behind it is brought in all the same, unless there is no memory.
    pub(crate) fn bring_in_areas(&self, range: PageRange) -> Result<(), Error> {
        let mut verdict = Ok(());
        let mut start = range.start();
        while let Some(rest) = PageRange::between(start, range.end())
            && let Some((part, access)) = self.first_part(rest)
        {
            let brought = match access {
                Some(access) => self.populate_until(part, access),
                None => Err((part.start(), Fault::NotAllowed)),
            };
            start = match brought {
                Err((_, Fault::OutOfMemory)) => return verdict.and(Err(Error::Again)),
                // Unmapped meanwhile: what was one area may go on behind the hole.
                Err((page, Fault::NotMapped)) => page + PAGE_SIZE,
                Ok(()) | Err(_) => part.end(),
            };
            verdict = verdict.and(brought.map_err(|_| Error::OutOfMemory));
        }
        verdict
    }

    /// The part of a range in the first area whose pages are not left to faults, and how they are brought in, if they may be accessed:
    /// a private page is copied now rather than at its first store.
    fn first_part(&self, range: PageRange) -> Option<(PageRange, Option<Access>)> {
        let layout = self.shared();
        let area = layout.areas.overlapping(range).find(|area| !area.has_flag(AreaFlags::LOCKED_ON_FAULT))?;
        let write = area.rights().contains(Rights::WRITE) && !area.is_shared();
        let access = (!area.rights().is_empty()).then_some(Access { write, execute: false });
        Some((area.range().intersection(&range)?, access))
    }

    /// Brings in what can be, area by area up to the first that does not allow it; a hole is told at the end.
    pub(crate) fn populate_strictly(&self, range: PageRange, write: bool) -> Result<(), Error> {
        let wanted = if write { Rights::WRITE } else { Rights::READ };
        let mut start = range.start();
        let mut has_hole = false;
        while let Some(rest) = PageRange::between(start, range.end()) {
            let part = {
                let layout = self.shared();
                let Some(area) = layout.areas.overlapping(rest).next() else {
                    return Err(Error::OutOfMemory);
                };
                has_hole |= area.start() > start;
                if !area.rights().contains(wanted) {
                    return Err(Error::Invalid);
                }
                area.range().intersection(&rest).ok_or(Error::OutOfMemory)?
            };
            self.populate(part, Access { write, execute: false }).map_err(|fault| match fault {
                Fault::OutOfMemory | Fault::NotMapped => Error::OutOfMemory,
                Fault::NotAllowed => Error::Invalid,
                Fault::Bus | Fault::Abandoned => Error::NotMapped,
            })?;
            start = part.end();
        }
        if has_hole { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    /// As [`AddressSpace::populate`]; says which page it was that could not be brought in.
    fn populate_until(&self, range: PageRange, access: Access) -> Result<(), (u64, Fault)> {
        let mut page = range.start();
        while page < range.end() {
            let is_there = self.shared().tables.peek(page).permits(access);
            if !is_there {
                self.resolve(page, access, false, Origin::Kernel).map_err(|fault| (page, fault))?;
                self.environment.yield_if_needed();
            }
            page += PAGE_SIZE;
        }
        Ok(())
    }
}
