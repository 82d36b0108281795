//! One disk that is swapped to: who owns its slots, and which of their pages are in memory.
//!
//! Under the lock of `swap`, where it is told what all this is for.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::slot_owners::SlotOwners;
use crate::store::{Store, Transfer};
use crate::swap::SwapRefused;

/// In place of a slot's owners: it is not to be used.
const BAD: u32 = u32::MAX;

/// What a cached page waits for.
pub(crate) enum State {
    /// The flush of whoever entered it, and then being written. The number tells this time from others.
    New(u64),
    Leaving,
    Coming(Arc<Transfer>),
    /// Nothing: frame and slot hold the same.
    Here {
        /// Nobody had mapped it when it was last looked at.
        was_idle: bool,
    },
    /// Nothing any more: it could not be written.
    Stuck,
}

pub(crate) struct Cached<E: Environment> {
    pub(crate) frame: FrameRef<E>,
    pub(crate) state: State,
}

impl<E: Environment> Cached<E> {
    /// Whether nothing but the cache refers to the page.
    pub(crate) fn is_alone(&self) -> bool {
        self.frame.is_alone()
    }
}

/// A disk that is swapped to.
pub(crate) struct SwapDisk<E: Environment> {
    pub(crate) store: Arc<dyn Store<E>>,
    pub(crate) priority: i32,
    /// Slots are given out.
    pub(crate) is_open: bool,
    owners: SlotOwners,
    /// Slots that may be used, and those of them without an owner.
    pub(crate) usable: u32,
    pub(crate) free: u32,
    /// Where the next look for a free slot begins.
    next: u32,
    pub(crate) cached: BTreeMap<u32, Cached<E>>,
}

impl<E: Environment> SwapDisk<E> {
    /// All slots are free but the first, where the header is, and the `bad` ones.
    pub(crate) fn new(
        environment: &E,
        store: Arc<dyn Store<E>>,
        pages: u32,
        bad: &[u32],
    ) -> Result<Self, SwapRefused> {
        let mut owners = SlotOwners::none(pages);
        let mut usable = pages;
        let mut unusable = bad.iter().chain(&[0]).copied().filter(|page| *page < pages);
        let outcome = unusable.try_for_each(|page| {
            if owners.of(environment.frames(), page) == 0 {
                owners.set(environment, page, BAD)?;
                usable -= 1;
            }
            Ok(())
        });
        let cached = BTreeMap::new();
        let disk = Self { store, priority: 0, is_open: true, owners, usable, free: usable, next: 1, cached };
        let refused = match outcome {
            Err(OutOfMemory) => SwapRefused::OutOfMemory,
            Ok(()) if usable == 0 => SwapRefused::Empty,
            Ok(()) => return Ok(disk),
        };
        disk.release(environment);
        Err(refused)
    }

    /// Gives back what the counts lie in.
    pub(crate) fn release(self, environment: &E) {
        self.owners.release(environment);
    }

    /// Whether nothing is in it, and nothing carried.
    pub(crate) fn is_empty(&self) -> bool {
        self.free == self.usable && self.cached.is_empty()
    }

    pub(crate) fn owners(&self, environment: &E, page: u32) -> u32 {
        match self.owners.of(environment.frames(), page) {
            BAD => 0,
            owners => owners,
        }
    }

    /// Of a slot that has an owner.
    fn set_owners(&mut self, environment: &E, page: u32, owners: u32) {
        let set = self.owners.set(environment, page, owners);
        debug_assert!(set.is_ok(), "what has an owner has a place to say so in");
    }

    /// One owner less; says how many are left.
    pub(crate) fn give_up(&mut self, environment: &E, page: u32) -> u32 {
        let owners = self.owners(environment, page);
        debug_assert!(owners > 0, "a slot without an owner was given up");
        let left = owners.saturating_sub(1);
        self.set_owners(environment, page, left);
        self.free += u32::from(left == 0);
        left
    }

    /// One owner more.
    pub(crate) fn count(&mut self, environment: &E, page: u32) {
        let owners = self.owners(environment, page);
        debug_assert!((1..BAD - 1).contains(&owners), "a slot without an owner was copied");
        self.set_owners(environment, page, owners + 1);
    }

    /// A slot that nothing is in nor is carried to or from, with one owner.
    pub(crate) fn take_free(&mut self, environment: &E) -> Option<u32> {
        let frames = environment.frames();
        let ignores_carried = is_made(Mistake::SlotGivenOutWhileCarried);
        let is_good = |page: u32| ignores_carried || !self.cached.contains_key(&page);
        let find = |range| self.owners.find_free(frames, range, &is_good);
        let page = find(self.next..self.owners.slots()).or_else(|| find(1..self.next))?;
        self.owners.set(environment, page, 1).ok()?;
        self.free -= 1;
        self.next = page + 1;
        Some(page)
    }

    /// A slot without an owner is not to be used any more. If there is no memory to say so, it is tried again one day.
    pub(crate) fn spoil(&mut self, environment: &E, page: u32) {
        self.cached.remove(&page);
        if self.owners.set(environment, page, BAD).is_ok() {
            self.usable -= 1;
            self.free -= 1;
        }
    }
}
