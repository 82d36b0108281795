//! The heap that `brk` moves: one area (as long as nobody cuts it) that starts where the program's data ends.

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags, Source};
use crate::areas::gap_end_below;
use crate::environment::Environment;
use crate::error::Error;
use crate::limits::Limit;
use crate::range::{PAGE_SIZE, PageRange, USER_END, round_up};
use crate::rights::Rights;

/// Where the heap starts and ends; the end need not be a page's.
#[derive(Clone, Copy, Default)]
pub(crate) struct Heap {
    start: u64,
    end: u64,
}

impl<E: Environment> AddressSpace<E> {
    /// Says where the heap starts (`execve`). It is empty then.
    pub fn set_heap_start(&self, start: u64) {
        let start = start.min(USER_END);
        self.exclusive().heap = Heap { start, end: start };
    }

    /// Moves the end of the heap (`brk`) and says where it is then: where it was, if it could not be moved.
    pub fn set_heap_end(&self, wanted: u64) -> u64 {
        let mut layout = self.exclusive();
        let heap = layout.heap;
        if wanted < heap.start || self.move_heap_end(&mut layout, wanted).is_err() {
            return heap.end;
        }
        layout.heap.end = wanted;
        let flags = layout.locks_to_come;
        drop(layout);
        if let (Some(old_end), Some(new_end)) = (round_up(heap.end), round_up(wanted)) {
            self.bring_in_growth(flags, PageRange::between(old_end, new_end));
        }
        wanted
    }

    fn move_heap_end(&self, layout: &mut Layout<E>, wanted: u64) -> Result<(), Error> {
        let heap = layout.heap;
        if wanted > USER_END || wanted - heap.start > self.limits.get(Limit::Data) {
            return Err(Error::OutOfMemory);
        }
        let old_end = round_up(heap.end).ok_or(Error::OutOfMemory)?;
        let new_end = round_up(wanted).ok_or(Error::OutOfMemory)?;
        if let Some(surplus) = PageRange::between(new_end, old_end) {
            if layout.areas.splits_at_ends(surplus) == 2 {
                layout.areas.check_count(1)?;
            }
            self.remove(layout, surplus, Cause::Brk);
        }
        if let Some(growth) = PageRange::between(old_end, new_end) {
            self.grow_heap(layout, growth)?;
        }
        Ok(())
    }

    fn grow_heap(&self, layout: &mut Layout<E>, growth: PageRange) -> Result<(), Error> {
        // A page stays free above the heap, as on Linux.
        let blocked = layout
            .areas
            .first_ending_above(growth.start())
            .is_some_and(|area| growth.end() + PAGE_SIZE > gap_end_below(area));
        if blocked {
            return Err(Error::OutOfMemory);
        }
        layout.areas.check_count(1)?;
        let flags = AreaFlags::HEAP | layout.locks_to_come;
        self.check_growth_of_locked(layout, flags, growth.pages())?;
        self.check_expansion(layout, growth.pages())?;
        self.check_commitment(layout, growth.pages())?;
        let rights = Rights::READ | Rights::WRITE;
        layout.areas.insert(Area::new(growth, rights, Rights::all(), flags, Source::Anonymous));
        Ok(())
    }
}
