//! Guarding pages against stores until their monitor has heard of them: `UFFDIO_WRITEPROTECT`.
//!
//! Guarding takes the right to write away, so it is flushed like `mprotect`'s, in one round for the call. It must be over before
//! anybody acts on what the tables then say. Linux takes the area lock shared here, and flushes at the end: a third thread
//! copied a page in between, which the tables called unwritable and a stale entry still wrote to (6ce64428d620). Here, as in
//! `madvise`, what keeps others off until the flush is over is the table's lock, if the range lies in one table, and else the
//! exclusive area lock:
//!
//! * whoever copies the page, or shares it with a child, finds under that lock an entry that nobody can store through;
//! * another guard of the same page, which would find nothing to do, returns only after the first one's flush.
//!
//! **Pages that are not there.** A page of an object comes without its mapping's doing: another mapping or a call makes it, or it was
//! there all along. So in areas that show one, shared or private, guards outlive pages. An entry without a page holds the guard alone
//! ([`Entry::GUARD`]), and whoever puts a page in compares it under the table's lock with what it saw there (`fault`). It is put where a
//! page was guarded that is taken out and can be had again, by `madvise`, truncation, a hole, or reclaim, and where one is to be guarded and none
//! is. That an entry is empty does not mean that nobody stores through what it was: a batch may have emptied it and not
//! flushed yet, and the page may still be the object's. So a guard settles for batches, whatever it finds. Only unmapping ends a guard, and filling the
//! page in without one, as on Linux. In anonymous memory what is not there is zeroes, and is not guarded.
//!
//! Taking the guard away only adds rights (or only a bit that hardware ignores), so the policy flushes nothing. The page becomes writable
//! only if it is the mapping's own: what is shared with a child since is copied by the store that comes.

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::area::Area;
use crate::changes::Changes;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Error;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::page_table::{LEAF_SPAN, PageTable};
use crate::range::{PAGE_SIZE, PageRange};

impl<E: Environment> AddressSpace<E> {
    /// Guards the pages of a range against stores, of anonymous memory those that are there, or takes the guard away.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the range is not all in one area that is watched for stores, [`Error::Again`] while the monitor has not
    /// heard of a change, [`Error::Ended`]; [`Error::OutOfMemory`] for want of a table, when pages before it stay guarded.
    pub fn guard(&self, monitor: &E::Monitor, range: PageRange, guard: bool) -> Result<(), Error> {
        if !guard {
            let layout = self.shared();
            let area = self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            self.unguard_pages(&layout.tables, area, range);
        } else if range.start() / LEAF_SPAN == (range.end() - 1) / LEAF_SPAN {
            let layout = self.shared();
            let area = self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            let Some(mut leaf) = leaf_to_guard(&layout.tables, area, range.start())? else { return Ok(()) };
            let mut changes = self.changes_under_lock(Cause::Userfault);
            guard_leaf(&mut leaf, area, range, &mut changes);
            if is_made(Mistake::GuardFlushedAfterUnlock) {
                drop(leaf);
                changes.finish();
            } else {
                changes.finish();
                drop(leaf);
            }
        } else {
            let layout = self.exclusive();
            let area = self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            // Dropped, and so flushed, before the lock is released, if a table cannot be had, too.
            let mut changes = self.changes(Cause::Userfault);
            let mut rest = Some(range);
            while let Some(range) = rest {
                let end = ((range.start() / LEAF_SPAN + 1) * LEAF_SPAN).min(range.end());
                if let Some(mut leaf) = leaf_to_guard(&layout.tables, area, range.start())? {
                    guard_leaf(&mut leaf, area, PageRange::of_area(range.start(), end), &mut changes);
                }
                self.environment.yield_if_needed();
                rest = PageRange::between(end, range.end());
            }
            changes.finish();
        }
        Ok(())
    }

    /// Takes the guards away from pages of an area. Table by table: nobody is promised anything that could be met half done.
    pub(crate) fn unguard_pages(&self, tables: &PageTable<E>, area: &Area<E>, range: PageRange) {
        tables.for_each_leaf(range, |leaf, part| {
            let mut changes = self.changes_under_lock(Cause::Userfault);
            for (address, seen) in leaf.used_entries(part) {
                if !seen.holds_page() && !seen.is_swapped() {
                    leaf.replace(address, Entry::EMPTY);
                    continue;
                }
                let changed = leaf.update(address, |old| {
                    old.has(Bits::GUARDED).then(|| self.unguarded(area, old.without(Bits::GUARDED)))
                });
                if let Some((old, new)) = changed {
                    changes.changed(leaf, address, old, new);
                }
            }
        });
    }

    fn unguarded(&self, area: &Area<E>, entry: Entry) -> Entry {
        if entry.is_swapped() {
            return entry;
        }
        if is_made(Mistake::UnguardedWithoutAskingWhoOwns) {
            return entry.with_rights(area.rights(), true);
        }
        self.entry_for(area, entry)
    }
}

/// Whether pages that are not there are guarded, too.
fn guards_outlive_pages<E: Environment>(area: &Area<E>) -> bool {
    area.backing().is_some()
}

/// The table around an address, if there is anything to be guarded in it.
fn leaf_to_guard<'a, E: Environment>(
    tables: &'a PageTable<E>,
    area: &Area<E>,
    address: u64,
) -> Result<Option<Leaf<'a, E>>, Error> {
    if guards_outlive_pages(area) { Ok(tables.leaf_or_create(address)?) } else { Ok(tables.leaf(address)) }
}

fn guard_leaf<E: Environment>(
    leaf: &mut Leaf<'_, E>,
    area: &Area<E>,
    part: PageRange,
    changes: &mut Changes<'_, E>,
) {
    if !is_made(Mistake::GuardTrustsEmptyEntries) || leaf.used_pages(part).next().is_some() {
        changes.settle();
    }
    if guards_outlive_pages(area) {
        for address in (part.start()..part.end()).step_by(PAGE_SIZE as usize) {
            if leaf.entry(address).is_empty() {
                leaf.guard_absent(address);
            }
        }
    }
    for (address, _) in leaf.used_entries(part) {
        // Also of a page that is in a slot. (A guard alone is one already.)
        let guarded = |old: Entry| (!old.has(Bits::GUARDED)).then(|| old.guarded());
        if let Some((old, new)) = leaf.update(address, guarded) {
            changes.changed(leaf, address, old, new);
        }
    }
}

/// That stores are not watched is no other error than that nothing is.
fn not_found(error: Error) -> Error {
    if error == Error::Invalid { Error::NotFound } else { error }
}
