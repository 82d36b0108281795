//! Holes in objects: `fallocate` with `FALLOC_FL_PUNCH_HOLE`, `MADV_REMOVE`.
//!
//! A hole reads as zeroes. Unlike a page that truncation cuts off, one in a hole may be asked for at once, and would be another frame than
//! the one that CPUs still hold: some would see the new page and others the old one (D4). So who wants it waits until nobody does:
//!
//! 1. Under the object's lock the pages leave it, and are announced as on their way out. A fault, a read, a write or a monitor that
//!    wants one of them waits ([`MemoryObject::settled`]). A fault that got one before finds under its table's lock that the object has been
//!    [cut](MemoryObject::cuts) since, and looks again.
//! 2. All entries that map them are taken out, of all spaces that show the object, as one batch: the walk finds an entry under the lock
//!    under which a fault puts it in. Whoever has emptied some and not flushed is met. Copies that private mappings have of their own stay.
//! 3. One flush for all objects of the call.
//! 4. Who waits goes on. The frames go back.
//!
//! Locks: an object's turn to be punched, held over all of this, then what a reverse walk takes (`mappings`). Whoever waits for a turn may
//! hold an area lock shared, and nothing that a walk needs. Several objects are taken in the order of their addresses.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use core::slice;

use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;

/// A hole that is to be: pages of an object.
pub(crate) struct Hole<E: Environment> {
    pub(crate) backing: BackingRef<E>,
    pub(crate) pages: Range<u64>,
}

impl<E: Environment> MemoryObject<E> {
    /// Takes these pages out of the object and of all mappings; they read as zeroes afterwards, at once and everywhere. May sleep.
    ///
    /// # Errors
    /// When the object started with other bytes than zeroes there, and there is no memory to replace them: nothing has changed then.
    pub fn punch(&self, pages: Range<u64>) -> Result<(), OutOfMemory> {
        punch_ordered(self.environment(), &[(self, pages)])
    }
}

/// Punches holes, all with one flush. May sleep.
///
/// # Errors
/// As [`MemoryObject::punch`]; some may have been punched.
pub(crate) fn punch_all<E: Environment>(environment: &E, holes: &[Hole<E>]) -> Result<(), OutOfMemory> {
    let mut ordered: Vec<Part<'_, E>> = Vec::new();
    ordered.extend(holes.iter().filter_map(|hole| Some((hole.backing.object()?, hole.pages.clone()))));
    ordered.sort_by_key(|(object, pages)| (core::ptr::from_ref(*object).addr(), pages.start));
    punch_ordered(environment, &ordered)
}

type Part<'a, E> = (&'a MemoryObject<E>, Range<u64>);

/// As [`punch_all`], with the holes of one object side by side.
fn punch_ordered<E: Environment>(environment: &E, holes: &[Part<'_, E>]) -> Result<(), OutOfMemory> {
    let of_one_object = |one: &Part<'_, E>, next: &Part<'_, E>| core::ptr::eq(one.0, next.0);
    let turns: Vec<_> = holes.chunk_by(of_one_object).map(|parts| (parts[0].0.turn(), parts)).collect();
    let mut batch = PageBatch::concluding_absence(environment);
    let mut verdict = Ok(());
    let mut lost = Vec::new();
    for (object, pages) in turns.iter().flat_map(|(_, parts)| parts.iter()) {
        match object.give_up(pages.clone()) {
            Ok(pages) => lost.push(take_out(object, pages, &mut batch)),
            Err(error) => {
                verdict = Err(error);
                break;
            }
        }
    }
    if is_made(Mistake::HoleFreedBeforeFlush) {
        lost.clear();
    }
    batch.finish();
    for (_, parts) in &turns {
        parts[0].0.settle();
    }
    drop(turns);
    // Only now: an entry that somebody else has emptied may have been the last to hold one of them, but for the object.
    drop(lost);
    verdict
}

/// Takes out the entries that map these pages, which the object has lost; gives the pages back, to be kept until the flush.
fn take_out<E: Environment>(
    object: &MemoryObject<E>,
    lost: BTreeMap<u64, FrameRef<E>>,
    batch: &mut PageBatch<'_, E>,
) -> BTreeMap<u64, FrameRef<E>> {
    let (Some((&first, _)), Some((&last, _))) = (lost.first_key_value(), lost.last_key_value()) else {
        return lost;
    };
    object.mappings().for_each_leaf(
        slice::from_ref(&(first..last + 1)),
        batch,
        |batch, space, leaf, shown| {
            for (address, entry) in leaf.used_pages(shown.part) {
                let page = shown.page(address);
                if lost.get(&page).is_some_and(|frame| frame.number() == entry.frame()) {
                    batch.take_out(space, leaf, address);
                }
            }
        },
    );
    lost
}
