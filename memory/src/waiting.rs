//! Pages that were taken out of all entries, and whose flush waits until somebody needs their frames.
//!
//! CPUs may go on reading such a page through what they have cached. A program cannot tell, as long as that is the page: so
//! **it stays its object's page, in the same frame**, until the flush is over. Whoever wants it meanwhile, by a fault or a call, finds it
//! where it was, without the store, and what is stored to it then is stored to the frame that everybody sees. There is never another frame with the
//! same page of the object beside it, and nobody else gets the frame, as it is counted as referred to.
//!
//! When frames are needed, batches of which every CPU has flushed by itself go for nothing, and if those are not enough, one flush serves all
//! others (`coherence`'s `epochs.rs`). Then a page goes as after any flush, if nobody has come for it.
//!
//! **Who takes a page away from its object** (truncation, holes) meets what waits in each space that he goes through, and flushes it; so does whoever
//! empties or changes entries for a program, and a fault that maps a private copy where the object's page was.
//!
//! **How many** is bounded, by a share of all frames. Objects and spaces are not kept alive by what waits here; frames are. Of each page it costs 16 bytes, and of each entry eight.
//!
//! **One at a time lets pages go.** While somebody does, what waited is in his hands and not in the pool, and he lets others run. Who wants nothing to be left (`forget_clean`) must
//! find what he has, so each waits for his turn.
//!
//! Locks: the turn, which sleeps, before all that the end of a space or an object takes; nobody has an area lock or an object's list then. The pool's is a leaf.

use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use coherence::{Cause, Deferred, Flushed, Recorded};
use lock_api::{Mutex, RawMutex, RawRwLock, RwLock};

use crate::address_space::AddressSpace;
use crate::environment::Environment;
use crate::frame::{FrameNumber, FrameRef};
use crate::frame_list::FrameList;
use crate::frames::Frames;
use crate::mistake::{Mistake, is_made};
use crate::object::MemoryObject;
use crate::page_batch::{Held, PageBatch};
use crate::reclaim::{Candidate, Share};

/// One frame in so many may wait, at most: as many are missing to whoever uses memory, in the worst case.
const SHARE: usize = 8;

/// Pages of one object, each with a reference to its frame.
type Kept<E> = (Weak<MemoryObject<E>>, Vec<(u64, FrameNumber)>);

/// How a page goes that is taken back.
type Forget<E> = fn(&Frames<<E as Environment>::TableLock>, FrameNumber);

/// What one batch has taken out.
struct Parcel<E: Environment> {
    /// The references of entries.
    frames: FrameList,
    /// Where something was recorded, and the last of it.
    spaces: Vec<(Weak<AddressSpace<E>>, Recorded)>,
    pages: Vec<Kept<E>>,
    forget: Forget<E>,
}

/// All pages of one machine that wait.
pub struct Waiting<E: Environment> {
    /// Held by whoever lets pages go.
    turn: RwLock<E::AreaLock, ()>,
    pool: Mutex<E::TableLock, Pool<E>>,
}

struct Pool<E: Environment> {
    batches: Vec<Deferred<Vec<Parcel<E>>>>,
    pages: usize,
}

impl<E: Environment> Waiting<E> {
    /// None as yet.
    pub const fn new() -> Self {
        let pool = Pool { batches: Vec::new(), pages: 0 };
        Self {
            turn: RwLock::const_new(E::AreaLock::INIT, ()),
            pool: Mutex::const_new(E::TableLock::INIT, pool),
        }
    }

    /// How many pages wait.
    pub fn pages(&self) -> usize {
        self.pool.lock().pages
    }

    /// How many pages may wait.
    pub fn most(environment: &E) -> usize {
        environment.frames().statistics_total() as usize / SHARE
    }

    /// Keeps pages that a batch has taken out, if it has nothing that must be flushed at its end. Else it is, and those go that can. So do all that wait if
    /// they are too many by now. Says how many went. May sleep.
    pub(crate) fn keep(
        &self,
        batch: PageBatch<'_, E>,
        shares: Vec<Share<'_, E>>,
        forget: Forget<E>,
    ) -> usize {
        let environment = batch.environment();
        let Some(deferred) = batch.defer() else {
            return shares.into_iter().map(|(object, pages)| object.give_back(pages, forget)).sum();
        };
        let is_full = self.add(deferred, shares, forget) > Self::most(environment);
        if is_full { self.release(environment, usize::MAX) } else { 0 }
    }

    /// Says how many wait now.
    fn add(&self, deferred: Deferred<Held<E>>, shares: Vec<Share<'_, E>>, forget: Forget<E>) -> usize {
        let pages: usize = shares.iter().map(|(_, pages)| pages.len()).sum();
        let shares: Vec<Kept<E>> = shares.into_iter().map(|(object, pages)| numbers(object, pages)).collect();
        let deferred =
            deferred.map(|(frames, spaces)| vec![Parcel { frames, spaces, pages: shares, forget }]);
        let mut pool = self.pool.lock();
        pool.pages += pages;
        pool.batches.push(deferred);
        pool.pages
    }

    /// Lets pages go that nobody has come for: those for which nobody need be told, and if these are fewer than `enough`, all others after
    /// one flush. Says how many went. May sleep.
    pub fn release(&self, environment: &E, enough: usize) -> usize {
        let _turn = self.turn.write();
        let waiting = self.take();
        let coherence = environment.coherence();
        let (mut gone, mut rest): (usize, Option<Deferred<Vec<Parcel<E>>>>) = (0, None);
        for deferred in waiting {
            match coherence.redeem(deferred) {
                Ok(flushed) => gone += let_go(environment, flushed),
                Err(lagging) => {
                    rest = Some(match rest {
                        Some(rest) => rest.merge(lagging, joined),
                        None => lagging,
                    });
                }
            }
        }
        match rest {
            Some(rest) if gone >= enough => self.put_back(rest),
            Some(rest) => gone += let_go(environment, coherence.retire(rest, Cause::Reclaim)),
            None => {}
        }
        gone
    }

    fn take(&self) -> Vec<Deferred<Vec<Parcel<E>>>> {
        let mut pool = self.pool.lock();
        pool.pages = 0;
        mem::take(&mut pool.batches)
    }

    fn put_back(&self, rest: Deferred<Vec<Parcel<E>>>) {
        let mut pages = 0;
        let rest = rest.map(|parcels| {
            pages = parcels.iter().flat_map(|parcel| &parcel.pages).map(|(_, pages)| pages.len()).sum();
            parcels
        });
        let mut pool = self.pool.lock();
        pool.pages += pages;
        pool.batches.push(rest);
    }
}

impl<E: Environment> Default for Waiting<E> {
    fn default() -> Self {
        Self::new()
    }
}

fn joined<E: Environment>(mut one: Vec<Parcel<E>>, mut other: Vec<Parcel<E>>) -> Vec<Parcel<E>> {
    one.append(&mut other);
    one
}

fn numbers<E: Environment>(object: &Arc<MemoryObject<E>>, pages: Vec<Candidate<E>>) -> Kept<E> {
    if is_made(Mistake::WaitingPageForgotten) {
        let mut contents = object.contents.lock();
        pages.iter().for_each(|(page, _)| drop(contents.pages.remove(page)));
    }
    let pages = pages.into_iter().map(|(page, frame)| (page, frame.into_number())).collect();
    (Arc::downgrade(object), pages)
}

/// No CPU reaches these pages any more through the entries that were taken out.
fn let_go<E: Environment>(environment: &E, flushed: Flushed<Vec<Parcel<E>>>) -> usize {
    for (space, recorded) in flushed.get().iter().flat_map(|parcel| &parcel.spaces) {
        if let Some(space) = space.upgrade() {
            flushed.settles(space.space(), *recorded);
        }
    }
    let mut gone = 0;
    for parcel in flushed.into_inner() {
        parcel.frames.have_waited(environment);
        parcel.frames.release_yielding(environment);
        for (object, pages) in parcel.pages {
            let owned = |(page, number)| (page, FrameRef::from_number(environment, number));
            let pages = pages.into_iter().map(owned).collect();
            // Of an object that is no more, the frames go with these references.
            gone += object.upgrade().map_or(0, |object| object.give_back(pages, parcel.forget));
        }
    }
    gone
}
