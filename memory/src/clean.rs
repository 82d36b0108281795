//! Pages of an object that were stored to: taken as clean, and handed to whoever writes them out.
//!
//! That a page is dirty is known in two places: in the entries that map it (hardware sets the bit), and in the frame itself, where
//! it goes when an entry goes, and when the object is written to by a call. Cleaning takes the mark from both, *then* flushes, and
//! only then may the contents be read:
//!
//! 1. The frame's mark is taken, under the lock that calls hold while they store. Whatever is noted from here on stays for the next time.
//! 2. Each entry loses its dirty bit and the right to write, so that the next store faults, and marks the page again.
//! 3. The frames' marks are looked at once more: whoever emptied an entry between 1 and 2 has left its mark there, for a store that was made before
//!    this call. Such a mark is not taken, so that the page is written again the next time: who left it may not have flushed yet, and
//!    he came too late to be met in 4.
//! 4. Until the flush, stores through cached dirty entries land unnoticed. After it there are none: what they stored is read in 5, and
//!    what is stored later is noticed. Entries that others have emptied, or cleaned, without having flushed yet, are met: a
//!    page that `munmap` is just taking away is not clean before `munmap`'s flush. (Linux once thought so, and lost stores.)
//! 5. The contents of those that were dirty are handed out.

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::slice;

use coherence::Cause;

use crate::entry::Bits;
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::object::MemoryObject;
use crate::page_batch::PageBatch;
use crate::sync;

/// A page that is being cleaned.
struct Page<E: Environment> {
    frame: FrameRef<E>,
    is_dirty: bool,
}

impl<E: Environment> MemoryObject<E> {
    /// Takes the dirty ones of these pages as clean and hands each to `write`, which finds in it all that was stored before this call.
    /// What is stored from now on makes a page dirty again. May sleep.
    pub fn clean(&self, pages: Range<u64>, mut write: impl FnMut(u64, &FrameRef<E>)) {
        let taken = self.take_dirty(pages.clone()).into_iter();
        let mut cleaned: BTreeMap<u64, Page<E>> =
            taken.map(|(page, frame, is_dirty)| (page, Page { frame, is_dirty })).collect();
        let mut batch = PageBatch::new(self.environment(), Cause::Writeback);
        self.mappings().for_each_leaf(slice::from_ref(&pages), &mut batch, |batch, space, leaf, shown| {
            for (address, entry) in leaf.used_pages(shown.part) {
                let page = cleaned.get_mut(&shown.page(address));
                let Some(page) = page.filter(|page| page.frame.number() == entry.frame()) else {
                    continue;
                };
                let marks = Bits::WRITABLE | Bits::DIRTY;
                let changed = leaf.update(address, |old| old.has_any(marks).then(|| old.without(marks)));
                if let Some((old, new)) = changed {
                    page.is_dirty |= old.has(Bits::DIRTY);
                    batch.changed(space, address, old, new);
                }
            }
        });
        self.look_again(&mut cleaned);
        batch.flush_written();
        for (number, page) in cleaned.iter().filter(|(_, page)| page.is_dirty) {
            sync::frame_written(page.frame.number());
            write(*number, &page.frame);
        }
        batch.finish();
    }

    /// What others have noted of these pages since their marks were taken. What a walk found empty was noted before, under the lock of the same table.
    fn look_again(&self, cleaned: &mut BTreeMap<u64, Page<E>>) {
        if is_made(Mistake::LateMarksMissed) || is_made(Mistake::EntriesTakenAsTheyAre) {
            return;
        }
        let frames = self.environment().frames();
        for page in cleaned.values_mut() {
            page.is_dirty |= frames.is_dirty(page.frame.number());
        }
    }
}

impl<E: Environment> MemoryObject<E> {
    /// How many of its pages have been stored to since they were taken as clean. Goes through all entries that map it. May sleep.
    pub fn dirty_pages(&self) -> usize {
        let mut by_entries = BTreeMap::new();
        self.mappings().for_each_entry(|page, entry| {
            if entry.has(Bits::DIRTY) {
                by_entries.insert(page, entry.frame());
            }
        });
        let frames = self.environment().frames();
        let contents = self.contents.lock();
        let is_dirty = |(page, frame): &(&u64, &FrameRef<E>)| {
            frames.is_dirty(frame.number()) || by_entries.get(page) == Some(&frame.number())
        };
        contents.pages.iter().filter(is_dirty).count()
    }
}
