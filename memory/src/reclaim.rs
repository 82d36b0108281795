//! Taking back pages that can be had again.
//!
//! An object whose pages can be made or read again can give back those that nobody has stored to. All entries of all of them
//! are taken out first, as one batch; one flush; and then a page goes if nobody has come for it meanwhile:
//!
//! * A page whose entries were clean cannot become dirty through a cached entry: hardware would have to mark the entry in memory, which
//!   is gone. If an entry was dirty, so is the page now, and it stays.
//! * A fault that brings the page back, or is about to, has a reference to the frame: it is counted under the object's lock, from
//!   which alone new references could come. Such a page stays.
//!
//! * Pages that an area shows which is locked (`mlock`) stay, and count as used. Who locks an area marks it first, and then
//!   brings its pages in: what a look took out before the mark comes back.
//!
//! **Which** pages should go is seen from their entries: hardware marks those that it uses. Looking takes the mark, and flushes nothing:
//! a CPU that has cached the entry goes on using it without marking it again, so that the page looks more idle than it is until something else
//! drops that. Nothing is promised of the mark (`coherence`'s policy says so, which is asked). Two rules come with it:
//!
//! * *Not marked does not mean not cached.* An entry is taken out with its batch's flush whatever its marks say.
//! * *The mark is taken in one step from the entry as it is.* Hardware may mark the entry as stored to at any time, and that must stay.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::frames::Frames;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;

/// A page that may go, with a reference to its frame.
pub(crate) type Candidate<E> = (u64, FrameRef<E>);

/// Pages of one object.
pub(crate) type Share<'a, E> = (&'a Arc<MemoryObject<E>>, Vec<Candidate<E>>);

/// Pages that are looked for together where tables are gone through: as many as one table maps.
const NEIGHBOURHOOD: u64 = 512;

/// What the entries of a page say.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) is_used: bool,
    pub(crate) is_dirty: bool,
    /// Its only entry has been taken out.
    pub(crate) is_out: bool,
}

impl<E: Environment> MemoryObject<E> {
    /// Takes back those of these pages that nobody has stored to and that can be made again, in use or not; says how many went. Pages in use
    /// cost their users a fault. May sleep.
    pub fn reclaim(&self, pages: Range<u64>) -> usize {
        let candidates: Vec<Candidate<E>> = self.reproducible(pages);
        if candidates.is_empty() {
            return 0;
        }
        let mut batch = PageBatch::new(self.environment(), Cause::Reclaim);
        self.take_out(&candidates, &mut batch, |_| true);
        batch.finish();
        self.give_back(candidates, Frames::unlist_page)
    }

    /// As [`MemoryObject::reclaim`], where the flush waits until [`Waiting::release`](crate::Waiting::release), and the pages go then, unless they are too many to
    /// wait, or could be stored to. May sleep.
    pub fn put_by(self: &Arc<Self>, pages: Range<u64>) -> usize {
        let candidates = self.reproducible(pages);
        let mut batch = PageBatch::deferring(self.environment());
        self.take_out(&candidates, &mut batch, |_| true);
        self.environment().waiting().keep(batch, Vec::from([(self, candidates)]), Frames::unlist_page)
    }

    /// Empties the candidates' entries (these in the order of their pages), where `goes` says so.
    pub(crate) fn take_out(
        &self,
        candidates: &[Candidate<E>],
        batch: &mut PageBatch<'_, E>,
        goes: impl Fn(Entry) -> bool,
    ) {
        self.for_each_entry(candidates, batch, |batch, space, leaf, (address, entry, is_locked), _| {
            if goes(entry) && !is_locked {
                batch.take_out(space, leaf, address);
            }
        });
    }

    /// What the entries of each candidate say (these in the order of their pages). They lose their marks of being used. A clean entry without
    /// that mark, of a page that `goes` if it is the only one, is taken out at once.
    pub(crate) fn look_at_entries(
        &self,
        candidates: &[Candidate<E>],
        batch: &mut PageBatch<'_, E>,
        goes: impl Fn(&FrameRef<E>) -> bool,
    ) -> Vec<Seen> {
        let mut seen = vec![Seen::default(); candidates.len()];
        self.for_each_entry(candidates, batch, |batch, space, leaf, (address, entry, is_locked), index| {
            let seen = &mut seen[index];
            seen.is_used |= is_locked;
            seen.is_dirty |= entry.has(Bits::DIRTY);
            if is_made(Mistake::AgedByPlainStore) {
                leaf.replace(address, entry.aged());
                return;
            }
            if batch.age(space, leaf, address) {
                seen.is_used = true;
            } else if !entry.has(Bits::DIRTY) && !is_locked && goes(&candidates[index].1) {
                batch.take_out(space, leaf, address);
                seen.is_out = true;
            }
        });
        seen
    }

    /// Whether only one entry, the object and the caller refer to a page.
    pub(crate) fn has_one_entry(&self, frame: &FrameRef<E>) -> bool {
        self.environment().frames().references(frame.number()) == 3
    }

    /// Visits the entries that map the candidates (these in the order of their pages), with whether their area is locked, and the
    /// candidate's place among them.
    pub(crate) fn for_each_entry(
        &self,
        candidates: &[Candidate<E>],
        batch: &mut PageBatch<'_, E>,
        mut visit: impl FnMut(
            &mut PageBatch<'_, E>,
            &Arc<AddressSpace<E>>,
            &mut Leaf<'_, E>,
            (u64, Entry, bool),
            usize,
        ),
    ) {
        let near = candidates.chunk_by(|one, next| one.0 / NEIGHBOURHOOD == next.0 / NEIGHBOURHOOD);
        let ranges: Vec<Range<u64>> =
            near.filter_map(|near| Some(near.first()?.0..near.last()?.0 + 1)).collect();
        self.mappings().for_each_leaf(&ranges, batch, |batch, space, leaf, shown| {
            for (address, entry) in leaf.used_pages(shown.part) {
                let page = shown.page(address);
                if let Ok(index) = candidates.binary_search_by_key(&page, |(page, _)| *page)
                    && candidates[index].1.number() == entry.frame()
                {
                    visit(batch, space, leaf, (address, entry, shown.is_locked), index);
                }
            }
        });
    }
}
