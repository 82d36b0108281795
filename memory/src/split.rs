//! Large pages that fall to pieces: the same frames, one by one.
//!
//! A large page is never changed in part, and never lies in two areas. So each operation on part of one splits it first. Hardware must
//! not find two sizes of one address (it might use either, and some processors stop), so a split is: empty the large entry, flush, put a
//! table of its pieces there.
//!
//! Operations that hold the area lock exclusively **cut** at the two ends of their range, and flush only once, with all else that
//! they change: they hook the table in at once, but not present. Their own walks find it, hardware does not, and who faults meanwhile
//! waits for the area lock. After the flush it is revealed (`changes`). No CPU has anything of a hidden table's entries, so changing
//! those needs no flush of its own.
//!
//! A store to a large page that is shared with a forked child, or parent, holds the area lock shared. It **splits** under the lock of the
//! large entry's table, flush and all; the piece that is stored to is copied afterwards, as every small page is (`copy_on_write`).
//! A copy of two megabytes for one store would take long and might find no memory, while most children soon exec or exit.

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::changes::Changes;
use crate::entry::{Entry, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::large_entry::{Large, large_start};
use crate::mistake::{Mistake, is_made};
use crate::page_table::{PageTable, index};
use crate::range::PageRange;

impl<E: Environment> AddressSpace<E> {
    /// Whether [`AddressSpace::cut`] would find something to cut.
    pub(crate) fn cuts(&self, tables: &PageTable<E>, range: PageRange) -> bool {
        let is_inside = |end: u64| !end.is_multiple_of(LARGE_PAGE_SIZE) && tables.peek(end).is_large();
        self.environment.frames().large_pages().are_mapped()
            && (is_inside(range.start()) || is_inside(range.end()))
    }

    /// Lets no large page reach into `range` from outside. Under the exclusive area lock, which is held until `changes` are finished.
    pub(crate) fn cut(&self, tables: &PageTable<E>, range: PageRange, changes: &mut Changes<'_, E>) {
        if !self.environment.frames().large_pages().are_mapped() {
            return;
        }
        for end in [range.start(), range.end()] {
            if end.is_multiple_of(LARGE_PAGE_SIZE) {
                continue;
            }
            if let Some(mut large) = tables.large(end) {
                changes.settle();
                let taken = large.take_out();
                changes.changed_large(large_start(end), taken.old, Entry::EMPTY);
                large.put_pieces(taken, true);
                changes.reveal_later(large.table(), index(end, 1));
            }
        }
    }

    /// Splits all large pages in a range. Under the exclusive area lock; one round each, which is for ranges that come to be watched.
    pub(crate) fn split_all(&self, tables: &PageTable<E>, range: PageRange, cause: Cause) {
        if !self.environment.frames().large_pages().are_mapped() {
            return;
        }
        let mut address = large_start(range.start());
        while address < range.end() {
            if let Some(mut large) = tables.large(address) {
                let mut changes = self.changes_under_lock(cause);
                changes.settle();
                self.split(&mut large, address, &mut changes);
                changes.finish();
            }
            address += LARGE_PAGE_SIZE;
        }
    }

    /// Splits a large page now, under the lock of its entry's table.
    pub(crate) fn split(&self, large: &mut Large<'_, E>, address: u64, changes: &mut Changes<'_, E>) {
        let taken = large.take_out();
        if !is_made(Mistake::SplitNotFlushed) {
            changes.changed_large(large_start(address), taken.old, Entry::EMPTY);
        }
        if !is_made(Mistake::PiecesMappedBeforeFlush) {
            changes.flush();
        }
        large.put_pieces(taken, false);
    }
}
