//! The buddy allocator below the per-CPU caches.
//!
//! Free memory is kept as blocks of 2^order frames, each aligned to its size, on one list per order. The links live
//! in the frames' metadata, not in the free memory itself: a stray store through a stale translation can then
//! corrupt data, but never the allocator. A block's head carries `order + 1`; every other frame carries 0, so that
//! a block's buddy can be recognised by one look at the buddy's head. Everything here runs under one lock, held by
//! the caller; the metadata fields are atomics only because the metadata is shared memory.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// The largest block is 2^10 frames = 4 MiB.
pub const MAX_ORDER: usize = 10;
const NONE: u32 = u32::MAX;

/// The allocator's part of a frame's metadata.
pub(crate) struct BlockLink {
    next: AtomicU32,
    previous: AtomicU32,
    /// `order + 1` for the head of a free block, else 0.
    head: AtomicU8,
}

impl BlockLink {
    pub(crate) const fn new() -> Self {
        Self { next: AtomicU32::new(NONE), previous: AtomicU32::new(NONE), head: AtomicU8::new(0) }
    }

    /// While a frame is in use its link is free for whoever uses it: the pages of stores are listed by it (`page_lists`): before it, behind it.
    pub(crate) fn neighbours(&self) -> [&AtomicU32; 2] {
        [&self.previous, &self.next]
    }

    /// Is in no list any more.
    pub(crate) fn clear(&self) {
        self.neighbours().into_iter().for_each(|end| end.store(NONE, Relaxed));
    }

    /// As well for tables put aside, which hang on each other by it (`large_frames`).
    pub(crate) fn aside(&self) -> Option<u32> {
        Some(self.next.load(Relaxed)).filter(|next| *next != NONE)
    }

    pub(crate) fn set_aside(&self, frame: Option<u32>) {
        self.next.store(frame.unwrap_or(NONE), Relaxed);
    }
}

/// Finds the link of a frame, by frame number.
pub(crate) trait Links {
    /// The link; `None` for a frame that the allocator does not manage.
    fn link(&self, frame: u32) -> Option<&BlockLink>;
}

/// The free lists.
pub(crate) struct Buddy {
    heads: [u32; MAX_ORDER + 1],
    free: usize,
}

impl Buddy {
    pub(crate) const fn new() -> Self {
        Self { heads: [NONE; MAX_ORDER + 1], free: 0 }
    }

    /// Frames in all free blocks.
    pub(crate) fn free_frames(&self) -> usize {
        self.free
    }

    /// Takes a block of 2^order frames, splitting a larger one when it must.
    pub(crate) fn take(&mut self, links: &impl Links, order: usize) -> Option<u32> {
        let found = (order..=MAX_ORDER).find(|&candidate| self.heads[candidate] != NONE)?;
        let block = self.heads[found];
        self.unlink(links, block, found);
        for half in (order..found).rev() {
            self.link(links, block + (1 << half), half);
        }
        self.free -= 1 << order;
        Some(block)
    }

    /// Gives a block back and joins it with its free buddies.
    pub(crate) fn give(&mut self, links: &impl Links, mut block: u32, mut order: usize) {
        self.free += 1 << order;
        while order < MAX_ORDER {
            let buddy = block ^ (1 << order);
            let is_free_whole =
                links.link(buddy).is_some_and(|link| link.head.load(Relaxed) as usize == order + 1);
            if !is_free_whole {
                break;
            }
            self.unlink(links, buddy, order);
            block &= !(1 << order);
            order += 1;
        }
        self.link(links, block, order);
    }

    fn link(&mut self, links: &impl Links, block: u32, order: usize) {
        let own = links.link(block).expect("a free block has metadata");
        let next = core::mem::replace(&mut self.heads[order], block);
        own.head.store(order as u8 + 1, Relaxed);
        own.previous.store(NONE, Relaxed);
        own.next.store(next, Relaxed);
        if let Some(next) = links.link(next) {
            next.previous.store(block, Relaxed);
        }
    }

    fn unlink(&mut self, links: &impl Links, block: u32, order: usize) {
        let own = links.link(block).expect("a free block has metadata");
        own.head.store(0, Relaxed);
        let (next, previous) = (own.next.load(Relaxed), own.previous.load(Relaxed));
        match links.link(previous) {
            Some(previous) => previous.next.store(next, Relaxed),
            None => self.heads[order] = next,
        }
        if let Some(next) = links.link(next) {
            next.previous.store(previous, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::collections::BTreeSet;

    impl Links for Vec<BlockLink> {
        fn link(&self, frame: u32) -> Option<&BlockLink> {
            self.get(frame as usize)
        }
    }

    fn links(frames: usize) -> Vec<BlockLink> {
        (0..frames).map(|_| BlockLink::new()).collect()
    }

    #[test]
    fn blocks_join_again_to_the_largest_size() {
        let links = links(1024);
        let mut buddy = Buddy::new();
        for frame in 0..1024 {
            buddy.give(&links, frame, 0);
        }
        assert_eq!(buddy.free_frames(), 1024);
        assert_eq!(buddy.take(&links, MAX_ORDER), Some(0));
        assert_eq!(buddy.take(&links, 0), None);
    }

    #[test]
    fn blocks_are_aligned_and_never_overlap() {
        let links = links(1000);
        let mut buddy = Buddy::new();
        (0..1000).for_each(|frame| buddy.give(&links, frame, 0));
        let mut taken = BTreeSet::new();
        let mut blocks = Vec::new();
        for order in [3, 0, 5, 1, 0, 7, 2, 0, 4].into_iter().cycle() {
            let Some(block) = buddy.take(&links, order) else {
                break;
            };
            assert_eq!(block % (1 << order), 0);
            (block..block + (1 << order)).for_each(|frame| assert!(taken.insert(frame) && frame < 1000));
            blocks.push((block, order));
        }
        blocks.into_iter().for_each(|(block, order)| buddy.give(&links, block, order));
        assert_eq!(buddy.free_frames(), 1000);
        assert_eq!(buddy.take(&links, 9), Some(0));
    }
}
