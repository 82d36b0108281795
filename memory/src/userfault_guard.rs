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
use crate::range::PageRange;

impl<E: Environment> AddressSpace<E> {
    /// Guards the pages of a range that are there against stores, or takes the guard away.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the range is not all in one area that is watched for stores, [`Error::Again`] while the monitor has not
    /// heard of a change, [`Error::Ended`].
    pub fn guard(&self, monitor: &E::Monitor, range: PageRange, guard: bool) -> Result<(), Error> {
        if !guard {
            let layout = self.shared();
            let area = self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            self.unguard_pages(&layout.tables, area, range);
        } else if range.start() / LEAF_SPAN == (range.end() - 1) / LEAF_SPAN {
            let layout = self.shared();
            self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            let Some(mut leaf) = layout.tables.leaf(range.start()) else { return Ok(()) };
            let mut changes = self.changes_under_lock(Cause::Userfault);
            guard_leaf(&mut leaf, range, &mut changes);
            if is_made(Mistake::GuardFlushedAfterUnlock) {
                drop(leaf);
                changes.finish();
            } else {
                changes.finish();
                drop(leaf);
            }
        } else {
            let layout = self.exclusive();
            self.watched_area(&layout, monitor, range, true).map_err(not_found)?;
            let mut changes = self.changes(Cause::Userfault);
            layout.tables.for_each_leaf(range, |leaf, part| guard_leaf(leaf, part, &mut changes));
            changes.finish();
        }
        Ok(())
    }

    /// Takes the guards away from pages of an area. Table by table: nobody is promised anything that could be met half done.
    pub(crate) fn unguard_pages(&self, tables: &PageTable<E>, area: &Area<E>, range: PageRange) {
        tables.for_each_leaf(range, |leaf, part| {
            let mut changes = self.changes_under_lock(Cause::Userfault);
            for (address, _) in leaf.used_pages(part) {
                let changed = leaf.update(address, |old| {
                    old.has(Bits::GUARDED).then(|| self.unguarded(area, old.without(Bits::GUARDED)))
                });
                if let Some((old, new)) = changed {
                    changes.changed(address, old, new);
                }
            }
        });
    }

    fn unguarded(&self, area: &Area<E>, entry: Entry) -> Entry {
        if is_made(Mistake::UnguardedWithoutAskingWhoOwns) {
            return entry.with_rights(area.rights(), true);
        }
        self.entry_for(area, entry)
    }
}

fn guard_leaf<E: Environment>(leaf: &mut Leaf<'_, E>, part: PageRange, changes: &mut Changes<'_, E>) {
    changes.settle();
    for (address, _) in leaf.used_pages(part) {
        let guarded = |old: Entry| (!old.has(Bits::GUARDED)).then(|| old.guarded());
        if let Some((old, new)) = leaf.update(address, guarded) {
            changes.changed(address, old, new);
        }
    }
}

/// That stores are not watched is no other error than that nothing is.
fn not_found(error: Error) -> Error {
    if error == Error::Invalid { Error::NotFound } else { error }
}
