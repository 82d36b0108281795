//! Small pages become a large one: `MADV_COLLAPSE`.
//!
//! The pages are copied into a free run of frames, for they lie anywhere. While that goes on nobody may store to them, and afterwards
//! nobody may find both sizes, or old and new frames:
//!
//! 1. Under the exclusive area lock, and with reverse walks kept off, the tables of all places are unhooked, entries and all.
//! 2. One flush, of all their pages and of the ways to them: now no CPU reaches the pages, nor walks in the tables. It is the only one
//!    of the call, however many places there are.
//! 3. The pages are copied, and the large entries put in. Who has faulted meanwhile waits for the area lock.
//! 4. The old frames and tables are given back.
//!
//! All memory is got before the first table is unhooked, so nothing fails in the middle; what did not get any is left as it is.

use alloc::vec::Vec;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::changes::Changes;
use crate::entry::{Bits, Entry, LARGE_FRAMES, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::error::Error;
use crate::frame::FrameNumber;
use crate::large_frames::{Run, run};
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::range::PageRange;
use crate::sync::load_unhooked;

/// A place that is to become a large page, with all that this needs.
struct Place<E: Environment> {
    start: u64,
    run: Run<E>,
    aside: FrameNumber,
}

impl<E: Environment> AddressSpace<E> {
    /// Makes large pages of all whole, aligned places in these ranges that are not yet, range by range up to the first that has an error;
    /// says how many had none, and that error. All places together are one round.
    ///
    /// # Errors
    /// [`Error::Invalid`] where there may be none, or nothing that could be written is mapped; [`Error::OutOfMemory`] for a hole in the
    /// range or a lack of memory. What could be made is made all the same.
    pub(crate) fn collapse(&self, ranges: &[PageRange]) -> (usize, Result<(), Error>) {
        let mut layout = self.exclusive();
        let mut places = Vec::new();
        let mut verdict = Ok(());
        let mut done = 0;
        for &range in ranges {
            verdict = self.choose_all(&layout, range, &mut places);
            if verdict.is_err() {
                break;
            }
            done += 1;
        }
        if !places.is_empty() {
            self.collapse_places(&mut layout, places);
        }
        (done, verdict)
    }

    /// Adds the places of a range that can become large pages.
    fn choose_all(
        &self,
        layout: &Layout<E>,
        range: PageRange,
        places: &mut Vec<Place<E>>,
    ) -> Result<(), Error> {
        for area in layout.areas.overlapping(range) {
            self.choose(layout, area, range, places)?;
        }
        if layout.areas.is_covered(range) { Ok(()) } else { Err(Error::OutOfMemory) }
    }

    /// Adds the places of an area that can become large pages.
    fn choose(
        &self,
        layout: &Layout<E>,
        area: &Area<E>,
        range: PageRange,
        places: &mut Vec<Place<E>>,
    ) -> Result<(), Error> {
        let may_be =
            area.is_private_anonymous() && !area.has_flag(AreaFlags::SMALL_PAGES) && !area.is_watched();
        if !may_be || !area.has_private_pages() || !holds_a_place(area.range()) {
            return Err(Error::Invalid);
        }
        let Some(part) = area.range().intersection(&range) else { return Ok(()) };
        let mut verdict = Ok(());
        let mut start = part.start().next_multiple_of(LARGE_PAGE_SIZE);
        if start > part.end() {
            // Inside one place. Linux counts from the first border to the last, and finds fewer places than none.
            return Err(Error::Invalid);
        }
        while start + LARGE_PAGE_SIZE <= part.end() {
            match layout.tables.leaf(start) {
                // A range may be named twice.
                _ if places.iter().any(|place| place.start == start) => {}
                Some(leaf) if is_fit(&leaf, start) => {
                    drop(leaf);
                    let prepared = self.with_table_aside(Run::allocate(&self.environment));
                    let Some((run, aside)) = prepared else {
                        self.environment.frames().large_pages().note_failed_collapse();
                        return Err(Error::OutOfMemory);
                    };
                    places.push(Place { start, run, aside });
                }
                None if !layout.tables.has_room_for_large(start) => {}
                _ => verdict = Err(Error::Invalid),
            }
            start += LARGE_PAGE_SIZE;
        }
        verdict
    }

    fn collapse_places(&self, layout: &mut Layout<E>, places: Vec<Place<E>>) {
        // Announced before anything is locked.
        let mut changes = self.changes(Cause::Madvise);
        let _alone = self.places.write();
        changes.settle();
        let tables = &layout.tables;
        let unhook = |place: &Place<E>| tables.replace_upper(place.start, 1, Entry::EMPTY);
        let unhooked: Vec<Entry> = places.iter().map(unhook).collect();
        for (place, upper) in places.iter().zip(&unhooked) {
            changes.table_unhooked(place.start, LARGE_PAGE_SIZE, upper.frame());
        }
        if !is_made(Mistake::CollapseCopiedBeforeFlush) {
            changes.flush();
        }
        for (place, upper) in places.into_iter().zip(unhooked) {
            self.collapse_place(layout, place, upper, &mut changes);
        }
        changes.finish();
    }

    /// Copies what an unhooked table maps, puts a large page in its place, and gives the table and its pages back.
    fn collapse_place(
        &self,
        layout: &Layout<E>,
        place: Place<E>,
        upper: Entry,
        changes: &mut Changes<'_, E>,
    ) {
        let frames = self.environment.frames();
        let first = place.run.first();
        let words = frames.words(upper.frame());
        // Nobody is in the table any more.
        let entry =
            |frame: FrameNumber| Entry::from_bits(load_unhooked(&words[(frame.0 - first.0) as usize]));
        place.run.fill(|frame| {
            let old = entry(frame);
            if old.is_empty() || self.is_zero_frame(old.frame()) {
                return frames.zero(frame);
            }
            frames.copy(old.frame(), frame);
        });
        if is_made(Mistake::CollapseCopiedBeforeFlush) {
            changes.flush();
        }
        let mut resident = 0;
        for old in run(first).map(entry).filter(|old| !old.is_empty()) {
            resident += u64::from(!self.is_zero_frame(old.frame()));
            changes.release_later(old.frame());
        }
        changes.release_later(upper.frame());
        let Some(area) = layout.areas.find(place.start) else { return };
        let entry = Entry::large_page(place.run.into_first(), area.rights(), true).with(Bits::DIRTY);
        let room = layout.tables.room_for_large(place.start);
        debug_assert!(matches!(room, Ok(Some(_))), "its table was there, and nobody else is");
        if let Ok(Some(mut room)) = room {
            room.put(entry, place.aside);
        }
        self.note_resident(u64::from(LARGE_FRAMES) - resident);
        frames.large_pages().note_collapse();
    }
}

/// Whether a large page fits into an area.
fn holds_a_place(range: PageRange) -> bool {
    range.start().next_multiple_of(LARGE_PAGE_SIZE) + LARGE_PAGE_SIZE <= range.end()
}

/// Whether a table may become a large page: something in it can be written.
fn is_fit<E: Environment>(leaf: &Leaf<'_, E>, start: u64) -> bool {
    let range = PageRange::of_area(start, start + LARGE_PAGE_SIZE);
    // What is in a slot would have to be read first.
    let is_in_memory = leaf.used_entries(range).all(|(_, entry)| !entry.is_swapped());
    is_in_memory && leaf.used_pages(range).any(|(_, entry)| entry.has(Bits::WRITABLE))
}
