//! The first store to a page that is shared with another address space, an object, or the page of zeroes.
//!
//! The page was made unwritable everywhere before it was shared (fork flushes before it returns; object pages and
//! zeroes were never writable here), so its contents stand still, and copying them needs no flush. But other CPUs of
//! this space may hold the *old frame* for reading. Were the new one simply put in its place, a CPU could read a store
//! of another one, and then read the old contents from the old frame: two orders for one location (D4). So:
//! empty the entry, flush, and only then map the copy. All under the table's lock: a CPU that faults meanwhile waits
//! for it with interrupts on, and so answers this flush.

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::Area;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Fault;
use crate::fault::Attempt;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::rights::Access;

impl<E: Environment> AddressSpace<E> {
    /// Makes a present page of a private, writable area writable. `seen` is its entry as last looked at.
    pub(crate) fn break_copy_on_write(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        page: u64,
        seen: Entry,
    ) -> Result<Attempt, Fault> {
        // Prepared before the lock; wasted if the other owner goes away meanwhile.
        let copy = if self.is_exclusive(seen) { None } else { Some(self.frame_for_copy(seen)?) };
        let Some(mut leaf) = layout.tables.leaf(page) else {
            return Ok(Attempt::Again);
        };
        let mut changes = self.changes_under_lock(Cause::CopyOnWrite);
        let now = leaf.entry(page);
        if !now.is_same_but_for_use(seen) {
            return Ok(Attempt::Again);
        }
        if self.is_exclusive(now) {
            // All other owners are gone: the page is ours to write. The same frame, more rights: no flush.
            let raised = leaf.update(page, |old| {
                Some(old.with_rights(area.rights(), true).with(Bits::ACCESSED | Bits::DIRTY))
            });
            if let Some((old, new)) = raised {
                changes.changed(&leaf, page, old, new);
            }
            return Ok(Attempt::Done);
        }
        let Some(copy) = copy else {
            return Ok(Attempt::Again);
        };
        if !is_made(Mistake::CopySourceNotSettled) {
            // The right to write may have been taken away in a batch that has not flushed yet.
            self.environment.coherence().settle(self.space(), Cause::CopyOnWrite);
        }
        let old = leaf.replace(page, Entry::EMPTY);
        let was_zero = self.is_zero_frame(old.frame());
        if !was_zero {
            self.environment.frames().copy(old.frame(), copy.number());
        }
        changes.changed(&leaf, page, old, Entry::EMPTY);
        changes.release_later(old.frame());
        let new = Entry::page(copy.into_number(), area.rights(), true).with(Bits::DIRTY);
        debug_assert!(new.permits(Access::WRITE));
        if is_made(Mistake::CopyMappedBeforeFlush) || (was_zero && is_made(Mistake::ZeroesNotFlushed)) {
            leaf.replace(page, new);
        }
        // The flush of D4, see above. Only CPUs that have this space loaded and in use are told.
        changes.finish();
        leaf.replace(page, new);
        if was_zero {
            self.note_resident(1);
        }
        drop(leaf);
        area.note_private_page();
        Ok(Attempt::Done)
    }

    /// A frame to copy `entry`'s page to; of zeroes already if that is all there is to copy.
    fn frame_for_copy(&self, entry: Entry) -> Result<FrameRef<E>, Fault> {
        let frame = if self.is_zero_frame(entry.frame()) {
            FrameRef::zeroed(&self.environment)
        } else {
            FrameRef::allocate(&self.environment)
        };
        Ok(frame?)
    }
}
