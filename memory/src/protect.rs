//! Changing rights: `mprotect`.
//!
//! Each entry is changed in one atomic step, so that no CPU ever finds the page absent, and what the exchange returned
//! (with the accessed and dirty bits as hardware last set them) is what `coherence` judges. One gather, so at most one
//! flush, at the end: taking rights away is flushed before the call returns, only adding them is not flushed at all
//! (a CPU that holds the old entry faults once, finds that the entry allows the access, and retries).

use alloc::vec::Vec;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::changes::Changes;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Error;
use crate::page_table::{Mapping, PageTable};
use crate::range::PageRange;
use crate::rights::Rights;

impl<E: Environment> AddressSpace<E> {
    /// Gives all pages of a range these rights (`mprotect`). With `down_to_stack_start`, the range is extended down to
    /// the start of the area at its start, which must be one that grows down (`PROT_GROWSDOWN`).
    ///
    /// Areas are changed in order until an error is met, as on Linux: those before the error keep their new rights.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a hole in the range, too many areas, or writable memory beyond what can be had;
    /// [`Error::NotAllowed`] for rights that the mapped object does not allow; [`Error::Invalid`] if
    /// `down_to_stack_start` finds no stack.
    pub fn protect(&self, range: PageRange, rights: Rights, down_to_stack_start: bool) -> Result<(), Error> {
        let mut layout = self.exclusive();
        let mut start = range.start();
        if down_to_stack_start {
            let area = layout.areas.first_ending_above(start).filter(|area| area.start() < range.end());
            let area = area.ok_or(Error::OutOfMemory)?;
            if !area.has_flag(AreaFlags::GROWS_DOWN) {
                return Err(Error::Invalid);
            }
            start = area.start();
        }
        // Locked pages that become writable are copied now, and not at their first store.
        let mut to_be_brought_in = Vec::new();
        let mut changes = self.changes(Cause::Mprotect);
        if let Some(whole) = PageRange::between(start, range.end()) {
            self.cut(&layout.tables, whole, &mut changes);
        }
        while let Some(rest) = PageRange::between(start, range.end()) {
            let area = layout.areas.find(start).ok_or(Error::OutOfMemory)?;
            let part = area.range().intersection(&rest).ok_or(Error::OutOfMemory)?;
            start = part.end();
            if area.rights() == rights {
                continue;
            }
            if !area.may.contains(rights) {
                return Err(Error::NotAllowed);
            }
            layout.areas.check_count(layout.areas.splits_at_ends(part))?;
            if rights.contains(Rights::WRITE) && !area.is_shared() && !area.is_accounted() {
                self.check_commitment(&layout, part.pages())?;
            }
            if area.flags().brings_in() && area.is_unwritable_private() && rights.contains(Rights::WRITE) {
                to_be_brought_in.push(part);
            }
            let Layout { areas, tables, .. } = &mut *layout;
            areas.change(part, |area| {
                area.set_rights(rights);
                self.protect_pages(tables, area, &mut changes);
            });
        }
        // Under the exclusive area lock, so that a fault decided by the new rights cannot make a page writable that
        // this flush is about to make unwritable, or the other way round.
        changes.finish();
        drop(layout);
        for part in to_be_brought_in {
            self.bring_in_growth(AreaFlags::LOCKED, Some(part));
        }
        Ok(())
    }

    fn protect_pages(&self, tables: &PageTable<E>, area: &Area<E>, changes: &mut Changes<'_, E>) {
        tables.for_each(area.range(), |mapping, part| {
            let leaf = match mapping {
                Mapping::Leaf(leaf) => leaf,
                Mapping::Large(large) => {
                    changes.settle();
                    return self.change_large(large, area, part.start(), changes);
                }
            };
            changes.settle();
            for (address, _) in leaf.used_pages(part) {
                let changed = leaf.update(address, |old| {
                    let new = self.entry_for(area, old);
                    (new != old).then_some(new)
                });
                if let Some((old, new)) = changed.filter(|_| !leaf.is_hidden()) {
                    changes.changed(leaf, address, old, new);
                }
            }
        });
    }

    /// The entry that an area's rights make of an existing one. It becomes writable only where that needs no copy:
    /// elsewhere the first store will fault and get one.
    pub(crate) fn entry_for(&self, area: &Area<E>, entry: Entry) -> Entry {
        let may_write = area.is_shared() || entry.has(Bits::WRITABLE) || self.is_exclusive(entry);
        entry.with_rights(area.rights(), may_write)
    }
}
