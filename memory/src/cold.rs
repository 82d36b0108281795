//! Pages that will not be used soon: `MADV_COLD` and `MADV_PAGEOUT`, of mappings of stores and of private anonymous memory.
//!
//! A cold page loses its marks of use and becomes idle, so that it goes before others when memory is short. One that is paged out goes
//! at once: a store's if nobody has stored to it, a private one to a slot (`swap_out`); all of one call with one flush, or one for each 512 private pages. Pages that others map too are theirs to judge, as on
//! Linux, and stay as they are; so do private copies of an object's pages, and files in memory, which could go nowhere.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::address_space::AddressSpace;
use crate::area::{AreaFlags, Source, object_page};
use crate::backing::BackingRef;
use crate::entry::Bits;
use crate::environment::Environment;
use crate::error::Error;
use crate::frames::Frames;
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;
use crate::range::PageRange;
use crate::reclaim::Candidate;
use crate::swap_out::{Choice, Outgoing, PAGES_TO_A_FLUSH};

impl<E: Environment> AddressSpace<E> {
    /// Takes the pages of these ranges for idle, or takes them back. May sleep.
    pub(crate) fn retire(&self, ranges: &[PageRange], at_once: bool) {
        let shown = self.stored_pages(ranges);
        let waiting = self.environment.waiting();
        if at_once && !shown.is_empty() && waiting.pages() > 0 {
            // What has waited and come back would be taken for a page that others map too, and what has not would go on waiting.
            waiting.release(&self.environment, usize::MAX);
        }
        let mut outgoing = Outgoing::new(&self.environment, PAGES_TO_A_FLUSH);
        let mut going = Vec::new();
        for (backing, pages) in &shown {
            let Some(object) = backing.object() else { continue };
            if at_once {
                going.push((object, object.page_out(self, pages.clone(), &mut outgoing.batch)));
            } else {
                object.make_idle(self, pages.clone(), &mut outgoing.batch);
            }
        }
        let choice = if at_once { Choice::Own } else { Choice::Cold };
        // Somebody may bring pages back as fast as they go.
        let mut left: u64 = ranges.iter().map(PageRange::pages).sum();
        loop {
            if self.environment.swap().has_room() {
                self.retire_private(ranges, choice, &mut outgoing);
            }
            let has_more = outgoing.has_more();
            outgoing.finish();
            left = left.saturating_sub(PAGES_TO_A_FLUSH as u64);
            if !has_more || left == 0 {
                break;
            }
            outgoing = Outgoing::new(&self.environment, PAGES_TO_A_FLUSH);
        }
        for (object, pages) in going {
            object.give_back(pages, Frames::evict_page);
        }
    }

    /// What these ranges show of objects with a store.
    fn stored_pages(&self, ranges: &[PageRange]) -> Vec<(BackingRef<E>, Range<u64>)> {
        let layout = self.shared();
        let mut shown = Vec::new();
        for (range, area) in
            ranges.iter().flat_map(|range| layout.areas.overlapping(*range).map(move |area| (range, area)))
        {
            if let (Source::Object { backing, distance }, Some(part)) =
                (&area.source, area.range().intersection(range))
                && backing.object().is_some_and(MemoryObject::is_stored)
            {
                let first = object_page(part.start(), *distance);
                shown.push((backing.clone(), first..first.saturating_add(part.pages())));
            }
        }
        shown
    }

    /// Whether such advice may be given about a range.
    pub(crate) fn check_retiring(&self, range: PageRange) -> Result<(), Error> {
        let layout = self.shared();
        if layout.areas.overlapping(range).any(|area| area.has_flag(AreaFlags::LOCKED)) {
            return Err(Error::Invalid);
        }
        if layout.areas.is_covered(range) { Ok(()) } else { Err(Error::OutOfMemory) }
    }
}

impl<E: Environment> MemoryObject<E> {
    /// Takes out the entries of clean pages that only `space` maps; those pages.
    fn page_out(
        &self,
        space: &AddressSpace<E>,
        pages: Range<u64>,
        batch: &mut PageBatch<'_, E>,
    ) -> Vec<Candidate<E>> {
        let candidates = self.reproducible(pages);
        let mut is_out = vec![false; candidates.len()];
        self.for_each_entry(&candidates, batch, |batch, mapper, leaf, (address, entry, is_locked), index| {
            let is_its_own = core::ptr::eq(&**mapper, space) && self.has_one_entry(&candidates[index].1);
            if is_its_own && !is_locked && !entry.has(Bits::DIRTY) {
                batch.take_out(mapper, leaf, address);
                is_out[index] = true;
            }
        });
        candidates
            .into_iter()
            .zip(is_out)
            .filter_map(|(candidate, is_out)| is_out.then_some(candidate))
            .collect()
    }

    /// Takes the marks of use from pages that only `space` maps.
    fn make_idle(&self, space: &AddressSpace<E>, pages: Range<u64>, batch: &mut PageBatch<'_, E>) {
        let candidates = self.resident(pages);
        self.for_each_entry(&candidates, batch, |batch, mapper, leaf, (address, _, _), index| {
            let frame = &candidates[index].1;
            if !core::ptr::eq(&**mapper, space) || !self.has_one_entry(frame) {
                return;
            }
            batch.age(mapper, leaf, address);
            self.environment().frames().make_idle(frame.number());
        });
    }
}
