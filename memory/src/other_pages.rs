//! Other pages of the same object in the place of those that a range shows: `remap_file_pages`.
//!
//! What is there and what is put in its place are one step under the area lock: else another mapping, of another object or with
//! other rights, could come in between, and lend its pages to the rights of the old one. Who may store to the object's pages is kept
//! from changing for as long by the object itself ([`Backing::with_seals`](crate::Backing::with_seals)), which must come before the area
//! lock; so the object is looked up first, and looked at again.

use alloc::sync::Arc;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::error::Error;
use crate::map::{MapRequest, Place};
use crate::range::{PAGE_SIZE, PageRange};
use crate::rights::Rights;

/// No page of an object lies behind this offset.
const LARGEST_OFFSET: u64 = i64::MAX as u64;

impl<E: Environment> AddressSpace<E> {
    /// Shows the object's pages from `first_page` on in a range that shares pages of it, with the rights that it has there. Of its flags
    /// only the lock stays. The pages are brought in if `populate`.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless the range shows one object, shared, in one way, and without holes; also where stores could never be seen by
    /// others, which to Linux is no sharing. [`Error::Overflow`] behind the largest offset; [`Error::Permission`] if it could be stored to and no
    /// new mapping may. The others are those of [`AddressSpace::map`].
    pub fn show_other_pages(&self, range: PageRange, first_page: u64, populate: bool) -> Result<(), Error> {
        loop {
            let backing = shared_object(&self.shared(), range)?;
            let mut outcome = Ok(None);
            backing.with_seals(&mut |is_sealed| {
                outcome = self.try_to_show(range, &backing, (first_page, is_sealed));
            });
            if let Some(flags) = outcome? {
                if populate || flags.brings_in() {
                    // As for a new mapping.
                    let _ = self.bring_in_areas(range);
                }
                return Ok(());
            }
        }
    }

    /// `None` if it shows another object by now.
    fn try_to_show(
        &self,
        range: PageRange,
        backing: &BackingRef<E>,
        (first_page, is_sealed): (u64, bool),
    ) -> Result<Option<AreaFlags>, Error> {
        let mut layout = self.exclusive();
        if !Arc::ptr_eq(&shared_object(&layout, range)?, backing) {
            return Ok(None);
        }
        let area = layout.areas.find(range.start()).ok_or(Error::Invalid)?;
        if first_page > (LARGEST_OFFSET - range.length()) / PAGE_SIZE {
            return Err(Error::Overflow);
        }
        let (rights, mut may) = (area.rights(), area.may);
        let locks = area.flags() & AreaFlags::LOCKED;
        if is_sealed {
            if rights.contains(Rights::WRITE) {
                return Err(Error::Permission);
            }
            may -= Rights::WRITE;
        } else if !may.contains(Rights::WRITE) {
            return Err(Error::Invalid);
        }
        let request = MapRequest {
            place: Place::Fixed(range.start()),
            length: range.length(),
            rights,
            may,
            flags: AreaFlags::SHARED | locks,
            object: Some((backing.clone(), first_page)),
            populate: false,
        };
        self.map_in(&mut layout, request).map(|(_, flags)| Some(flags))
    }
}

/// The one object that a range shows and shares.
fn shared_object<E: Environment>(layout: &Layout<E>, range: PageRange) -> Result<BackingRef<E>, Error> {
    let first = layout.areas.find(range.start()).filter(|area| area.is_shared()).ok_or(Error::Invalid)?;
    let backing = first.backing().ok_or(Error::Invalid)?;
    let is_like_first = |area: &Area<E>| {
        let is_same_object = area.backing().is_some_and(|other| other.identity() == backing.identity());
        let (ours, theirs) = (first.flags(), area.flags());
        is_same_object && area.rights() == first.rights() && area.may == first.may && ours == theirs
    };
    let is_whole = layout.areas.is_covered(range) && layout.areas.overlapping(range).all(is_like_first);
    if is_whole { Ok(backing.clone()) } else { Err(Error::Invalid) }
}
