//! Taking mappings away: `munmap`, and what other operations share with it.
//!
//! One call is one gather: all entries are emptied, all tables that nothing is left in are unhooked, then there is one
//! flush, if any entry was present or any table was unhooked, and then the frames are given back. A range that was
//! never touched has no entries and no tables, so it causes no flush at all.

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::changes::Changes;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Error;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::page_table::{LEAF_SPAN, Mapping, PageTable};
use crate::range::PageRange;

/// What becomes of guards where pages are taken out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guards {
    /// They are for whatever comes: the area shows an object, which may have the page still.
    Stay,
    /// They were the page's, or nothing can come.
    Go,
}

impl<E: Environment> AddressSpace<E> {
    /// Removes all mappings in a range (`munmap`). That there are none is no error.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when cutting an area in two would make too many.
    pub fn unmap(&self, range: PageRange) -> Result<(), Error> {
        let mut layout = self.exclusive();
        if layout.areas.splits_at_ends(range) == 2 {
            layout.areas.check_count(1)?;
        }
        self.remove(&mut layout, range, Cause::Munmap);
        Ok(())
    }

    /// Removes all mappings in a range, tables included. When it returns, the flush is over, so the addresses may be
    /// mapped anew at once.
    pub(crate) fn remove(&self, layout: &mut Layout<E>, range: PageRange, cause: Cause) {
        let Some(leaving) = layout.areas.leaving(range) else { return };
        layout.announce_unmap(range);
        let mut changes = self.changes(cause);
        self.cut(&layout.tables, range, &mut changes);
        self.zap(&layout.tables, range, Guards::Go, &mut changes);
        // After its entries are empty an area leaves its object's list, and after that its tables are unhooked (`mappings`).
        layout.areas.remove(range);
        self.take_spare_tables(layout, range, &mut changes);
        // Under the exclusive area lock: until the flush is over, nobody may map anything else here (D4).
        changes.finish();
        drop(leaving);
    }

    /// Unhooks the tables that mapped part of `range`, from which all areas are gone, where nothing else uses them.
    pub(crate) fn take_spare_tables(
        &self,
        layout: &mut Layout<E>,
        range: PageRange,
        changes: &mut Changes<'_, E>,
    ) {
        let gap = layout.areas.gap_around(range);
        if has_spare_tables(range, gap) {
            // Who comes by the reverse way is out of these tables now, and does not find into them again.
            let _alone = (!is_made(Mistake::TablesTakenBesideReverseWalks)).then(|| self.places.write());
            take_tables(layout, range, gap, changes);
        }
    }

    /// Empties all entries of a range, which no large page reaches into, and takes over the references that they held.
    pub(crate) fn zap(
        &self,
        tables: &PageTable<E>,
        range: PageRange,
        guards: Guards,
        changes: &mut Changes<'_, E>,
    ) {
        tables.for_each(range, |mapping, part| match mapping {
            Mapping::Leaf(leaf) => self.zap_leaf(leaf, part, guards, changes),
            Mapping::Large(large) => self.zap_large(large, part, changes),
        });
    }

    /// As [`AddressSpace::zap`], for a part of one table.
    pub(crate) fn zap_leaf(
        &self,
        leaf: &mut Leaf<'_, E>,
        part: PageRange,
        guards: Guards,
        changes: &mut Changes<'_, E>,
    ) {
        changes.settle();
        if leaf.is_empty() {
            return;
        }
        let (mut gone, mut swapped) = (0, 0);
        for (address, seen) in leaf.used_entries(part) {
            // Guards change under the table's lock only, so that it is as it was seen.
            let left = if guards == Guards::Stay { seen.left_behind() } else { Entry::EMPTY };
            let old = leaf.replace(address, left);
            if let Some(slot) = old.slot() {
                // CPUs may have it still, for a batch has taken it out: that was asked for above.
                self.environment.swap().give_up(&self.environment, slot);
                swapped += 1;
            }
            if !old.holds_page() {
                continue;
            }
            if !leaf.is_hidden() {
                changes.changed(leaf, address, old, left);
            }
            if old.has(Bits::DIRTY) {
                self.environment.frames().note_dirty(old.frame());
            }
            if old.has(Bits::ACCESSED) {
                self.environment.frames().note_used(old.frame());
            }
            gone += u64::from(!self.is_zero_frame(old.frame()));
            changes.release_later(old.frame());
        }
        self.note_gone(gone);
        self.note_unswapped(swapped);
    }
}

/// Whether all that some table maps which maps part of `range` lies in `gap`, the free space around it.
pub(crate) fn has_spare_tables(range: PageRange, gap: PageRange) -> bool {
    // Most ranges share their first and last table with a neighbour, and have no other.
    let first = range.start() / LEAF_SPAN + u64::from(range.start() / LEAF_SPAN * LEAF_SPAN < gap.start());
    let last =
        range.end().div_ceil(LEAF_SPAN) - u64::from(range.end().div_ceil(LEAF_SPAN) * LEAF_SPAN > gap.end());
    first < last
}

/// Unhooks the tables that mapped part of `range` and whose whole reach lies in `gap`. Under the exclusive lock of places.
pub(crate) fn take_tables<E: Environment>(
    layout: &mut Layout<E>,
    range: PageRange,
    gap: PageRange,
    changes: &mut Changes<'_, E>,
) {
    layout.tables.take_tables(range, gap, &mut |address, span, table| {
        changes.table_taken(address, span, table);
    });
}
