//! Taking back pages that can be had again.
//!
//! An object that started as a copy of bytes that are still there can give back the pages that nobody has stored to. All entries of all of them
//! are taken out first, as one batch; one flush; and then a page goes if nobody has come for it meanwhile:
//!
//! * A page whose entries were clean cannot become dirty through a cached entry: hardware would have to mark the entry in memory, which
//!   is gone. If an entry was dirty, so is the page now, and it stays.
//! * A fault that brings the page back, or is about to, has a reference to the frame: it is counted under the object's lock, from
//!   which alone new references could come. Such a page stays.

use alloc::vec::Vec;
use core::ops::Range;

use coherence::Cause;

use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;
use crate::range::PAGE_SIZE;

impl<E: Environment> MemoryObject<E> {
    /// Takes back those of these pages that nobody has stored to and that can be made again; says how many went. Pages in use
    /// cost their users a fault. May sleep.
    pub fn reclaim(&self, pages: Range<u64>) -> usize {
        let candidates: Vec<(u64, FrameRef<E>)> = self.reproducible(pages.clone());
        let (Some((first, _)), Some((last, _))) = (candidates.first(), candidates.last()) else { return 0 };
        let mut batch = PageBatch::new(self.environment(), Cause::Reclaim);
        self.mappings().for_each_leaf(*first..*last + 1, &mut batch, |batch, space, leaf, part, first| {
            for (address, entry) in leaf.used_pages(part) {
                let page = first + (address - part.start()) / PAGE_SIZE;
                let candidate = candidates.binary_search_by_key(&page, |(page, _)| *page);
                if candidate.is_ok_and(|index| candidates[index].1.number() == entry.frame()) {
                    batch.take_out(space, leaf, address);
                }
            }
        });
        batch.finish();
        self.give_back(candidates)
    }
}
