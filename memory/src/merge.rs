//! Pages with equal contents become one frame, of which each gets a copy again when it is stored to.
//!
//! No program can tell (a physical operation), as long as no store is lost on the way. Two private pages, of one space or two:
//!
//! 1. **Write-protect.** Under its table's lock each entry loses the right to write, and the frame gets one more reference, which is
//!    ours. As long as we have it, nobody makes that page writable: that is only done for an entry that is its frame's one
//!    owner (`is_exclusive`). A store gets a copy instead, which the entry then maps in the frame's place.
//! 2. **Settle.** Until the flush, stores go on landing through cached entries. That an entry did not have the right to write does
//!    not help: who took it away may not have flushed yet, so that is met. (Linux once believed the entry, and lost stores.)
//! 3. **Compare.** Nobody can store to either frame now, nor before we let go of them.
//! 4. **Share.** If the second page still has its frame, its entry is emptied, flushed, and made to map the first one's, all under the
//!    table's lock. In this order since a CPU that kept the old frame could read from it what another one has overwritten in a copy of
//!    the new one (D4, as in `copy_on_write`).
//!
//! Whoever copies a page that cannot be written may find it in the middle of that: it settles first (`copy_on_write`).
//!
//! One area lock is held at a time, and shared: those of two spaces would need an order.

use alloc::sync::Arc;

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::area::Area;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::page_batch::PageBatch;
use crate::range::round_down;

impl<E: Environment> AddressSpace<E> {
    /// Makes the page at `address` and the one at `other_address` of `other` one frame, if they are private anonymous pages in
    /// memory with the same contents; says whether they are one now. May sleep.
    pub fn merge(self: &Arc<Self>, address: u64, other: &Arc<Self>, other_address: u64) -> bool {
        let mut batch = PageBatch::new(&self.environment, Cause::Merge);
        let kept = self.hold_still(address, &mut batch);
        let given_up = other.hold_still(other_address, &mut batch);
        batch.finish();
        let (Some(kept), Some(given_up)) = (kept, given_up) else { return false };
        if kept.number() == given_up.number() {
            return true;
        }
        let are_equal = self.environment.frames().are_equal(kept.number(), given_up.number());
        are_equal && other.share(other_address, &given_up, &kept)
    }

    /// Takes the right to write from a page, which after the batch's flush nobody can store to as long as the reference lives.
    fn hold_still(self: &Arc<Self>, address: u64, batch: &mut PageBatch<'_, E>) -> Option<FrameRef<E>> {
        let layout = self.shared();
        let page = round_down(address);
        // What an object has may be stored to through other mappings, and by calls.
        layout.areas.find(page).filter(|area| Area::is_private_anonymous(area))?;
        let mut leaf = layout.tables.leaf(page)?;
        let seen = leaf.entry(page);
        if !seen.is_present() || self.is_zero_frame(seen.frame()) {
            return None;
        }
        let frame = FrameRef::of(&self.environment, seen.frame());
        let protect = |old: Entry| old.has(Bits::WRITABLE).then(|| old.without(Bits::WRITABLE));
        match leaf.update(page, protect) {
            Some((old, new)) => batch.changed(self, page, old, new),
            None if is_made(Mistake::MergeTrustsEntries) => {}
            None => batch.meet(self),
        }
        Some(frame)
    }

    /// Maps `kept` where `given_up` is mapped, if it still is; both are held still. Says whether it was.
    fn share(&self, address: u64, given_up: &FrameRef<E>, kept: &FrameRef<E>) -> bool {
        let layout = self.shared();
        let page = round_down(address);
        let Some(mut leaf) = layout.tables.leaf(page) else { return false };
        let seen = leaf.entry(page);
        // The frame cannot have become another page's: we have a reference.
        if !seen.is_present() || seen.frame() != given_up.number() {
            return false;
        }
        let mut changes = self.changes_under_lock(Cause::Merge);
        let old = leaf.replace(page, Entry::EMPTY);
        debug_assert!(!old.has(Bits::WRITABLE), "a page that was held still became writable");
        changes.changed(&leaf, page, old, Entry::EMPTY);
        changes.release_later(old.frame());
        changes.finish();
        leaf.replace(page, old.with_frame(kept.clone().into_number()));
        true
    }
}
