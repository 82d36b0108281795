//! Making room: pages of stores are looked at, those that have been idle longest first, and taken back if they still are.
//!
//! A page is looked at three times at most: at the lists (`page_lists`), which say whose turn it is; at its entries, which say whether it was
//! used (`reclaim`), and from which it is taken out if not; and, after the flush of all that were taken out together, at itself: if
//! somebody has come for it meanwhile it stays. Pages that are not mapped have no entries, and cost no flush.
//!
//! Nothing is looked at more often than twice in one go, once on each list, so this ends however busy the pages are: then it has found
//! less than it was to find.
//!
//! **Pages are put by** for later as well ([`put_by`]): taken out in the same order, while there is time, and not flushed (`waiting`). When room is made next, they go
//! first, and it may well be that nobody has to be told any more.

use alloc::sync::Arc;
use alloc::vec::Vec;

use coherence::Cause;

use crate::entry::Bits;
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::frames::Frames;
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;
use crate::page_lists::{List, parts};
use crate::reclaim::{Candidate, Seen, Share};
use crate::waiting::Waiting;

/// Pages that one flush takes back, at most.
const PAGES_TO_A_FLUSH: usize = 2048;
/// Pages that are looked at together, at least: a look goes through the list of mappings.
const FEWEST: usize = 32;

/// What making room came to, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Idle pages that were looked at.
    pub looked_at: usize,
    /// Those of them that went.
    pub taken: usize,
}

/// Takes back about as many clean pages as are `wanted`, which have not been used for longest. `objects` are all of this machine that
/// have a store. May sleep.
pub fn take_back<E: Environment>(
    environment: &E,
    objects: &[Arc<MemoryObject<E>>],
    wanted: usize,
) -> Scanned {
    let counts = environment.frames().page_counts();
    // The first look at a page that was used takes the mark, and the second may take the page.
    let mut scan = Scan { environment, objects, left: 2 * counts.all(), scanned: Scanned::default() };
    scan.scanned.taken = environment.waiting().release(environment, wanted);
    while scan.scanned.taken < wanted && scan.left > 0 {
        let mut batch = PageBatch::new(environment, Cause::Reclaim);
        let (going, has_looked) = scan.find_idle(&mut batch, wanted - scan.scanned.taken);
        batch.finish();
        for (object, pages) in going {
            scan.scanned.taken += object.give_back(pages, Frames::evict_page);
        }
        if !has_looked {
            break;
        }
    }
    scan.scanned
}

/// Takes clean pages out, which have not been used for longest, until about `most` wait for [`take_back`]. Ends early where they cannot wait, as
/// some could be stored to: then these are taken back. `objects` as there. May sleep.
pub fn put_by<E: Environment>(environment: &E, objects: &[Arc<MemoryObject<E>>], most: usize) -> Scanned {
    let waiting = environment.waiting();
    // One look may find so many more than are missing.
    let most = most.min(Waiting::most(environment).saturating_sub(FEWEST));
    // No page is looked at twice: for what may be needed later none goes that was used a moment ago.
    let left = environment.frames().page_counts().idle;
    let mut scan = Scan { environment, objects, left, scanned: Scanned::default() };
    let mut missing = most.saturating_sub(waiting.pages());
    while missing > 0 && scan.left > 0 && scan.scanned.taken == 0 {
        let mut batch = PageBatch::deferring(environment);
        let (going, has_looked) = scan.find_idle(&mut batch, missing);
        scan.scanned.taken += waiting.keep(batch, going, Frames::evict_page);
        if !has_looked {
            break;
        }
        missing = most.saturating_sub(waiting.pages());
    }
    scan.scanned
}

/// One go.
struct Scan<'a, E: Environment> {
    environment: &'a E,
    objects: &'a [Arc<MemoryObject<E>>],
    /// How many pages may still be looked at.
    left: usize,
    scanned: Scanned,
}

impl<'a, E: Environment> Scan<'a, E> {
    /// Takes so many idle pages out of all entries, or as many as one batch takes; and whether there was anything to look at.
    fn find_idle(&mut self, batch: &mut PageBatch<'_, E>, missing: usize) -> (Vec<Share<'a, E>>, bool) {
        let frames = self.environment.frames();
        let missing = missing.min(PAGES_TO_A_FLUSH);
        let mut going: Vec<Share<'a, E>> = Vec::new();
        let (mut count, mut has_looked) = (0, false);
        while count < missing && self.left > 0 {
            let most = (missing - count).max(FEWEST).min(self.left);
            if frames.too_few_are_idle() {
                let used = self.look(List::Used, most);
                has_looked |= !used.is_empty();
                used.into_iter().for_each(|(object, pages)| object.age_used(pages, batch));
            }
            let idle = self.look(List::Idle, most);
            if idle.is_empty() {
                break;
            }
            has_looked = true;
            for (object, pages) in idle {
                self.scanned.looked_at += pages.len();
                let unused = object.choose(pages, batch);
                count += unused.len();
                going.push((object, unused));
            }
        }
        (going, has_looked)
    }

    /// Pages from the back of a list, by their objects and in their order there.
    fn look(&mut self, list: List, most: usize) -> Vec<Share<'a, E>> {
        let mut pages: Vec<(u32, Candidate<E>)> = Vec::with_capacity(most);
        self.environment.frames().look_at(list, most, |identity, frame| {
            let (object, page) = parts(identity);
            pages.push((object, (page, FrameRef::from_number(self.environment, frame))));
        });
        self.left = self.left.saturating_sub(pages.len());
        pages.sort_unstable_by_key(|(object, (page, _))| (*object, *page));
        let mut shares: Vec<Share<'a, E>> = Vec::new();
        for (number, page) in pages {
            let is_its = |object: &&Arc<MemoryObject<E>>| object.number() == Some(number);
            match shares.last_mut() {
                Some((object, share)) if object.number() == Some(number) => share.push(page),
                _ => {
                    shares.extend(self.objects.iter().find(is_its).map(|object| (object, Vec::from([page]))))
                }
            }
        }
        shares
    }
}

impl<E: Environment> MemoryObject<E> {
    /// Of idle pages, those that have still not been used and are clean, taken out of all entries. The others go back.
    fn choose(&self, candidates: Vec<Candidate<E>>, batch: &mut PageBatch<'_, E>) -> Vec<Candidate<E>> {
        let frames = self.environment().frames();
        let is_dirty = |frame: &FrameRef<E>| frames.is_dirty(frame.number());
        // Pages with one entry, as most have, need no second look.
        let is_alone = |frame: &FrameRef<E>| self.has_one_entry(frame) && !is_dirty(frame);
        let seen = self.look_if_mapped(&candidates, batch, is_alone);
        let (mut busy, mut mapped, mut idle) = (Vec::new(), Vec::new(), Vec::new());
        for (candidate, seen) in candidates.into_iter().zip(seen) {
            if seen.is_used || seen.is_dirty || is_dirty(&candidate.1) {
                busy.push((candidate, seen));
            } else if !seen.is_out && is_mapped(frames, &candidate.1) {
                mapped.push(candidate);
            } else {
                idle.push(candidate);
            }
        }
        self.put_back(busy);
        if !mapped.is_empty() {
            self.take_out(&mapped, batch, |entry| !entry.has(Bits::ACCESSED));
            idle.append(&mut mapped);
        }
        idle
    }

    /// Of pages in use, those that have not been used since the last look become idle.
    fn age_used(&self, candidates: Vec<Candidate<E>>, batch: &mut PageBatch<'_, E>) {
        let seen = self.look_if_mapped(&candidates, batch, |_| false);
        self.put_back(candidates.into_iter().zip(seen).collect());
    }

    fn look_if_mapped(
        &self,
        candidates: &[Candidate<E>],
        batch: &mut PageBatch<'_, E>,
        goes: impl Fn(&FrameRef<E>) -> bool,
    ) -> Vec<Seen> {
        let frames = self.environment().frames();
        if candidates.iter().any(|(_, frame)| is_mapped(frames, frame)) {
            return self.look_at_entries(candidates, batch, goes);
        }
        candidates.iter().map(|_| Seen::default()).collect()
    }
}

/// Whether anything but its object and whoever looks has a reference to the page: an entry, or a transfer.
fn is_mapped<E: Environment>(frames: &Frames<E::TableLock>, frame: &FrameRef<E>) -> bool {
    frames.references(frame.number()) > 2
}
