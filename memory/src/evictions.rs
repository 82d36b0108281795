//! What is remembered of pages that were taken back: when.
//!
//! A page that is wanted again soon after it went was taken for idle wrongly: the list of idle pages is too short to see that it is in
//! use. How soon is measured in pages, not in time. A clock advances whenever a page leaves the idle list, by going or by being found in
//! use; what it showed when a page went is kept here; when the page comes back, the difference says by how many pages the list was
//! too short. If that many pages are among those in use, the page would have stayed had it been one of them, so it
//! is taken for one (`page_lists`), and those others must show that they are used more often than it is.
//!
//! A mark is a tag of the page's identity and the clock, one word in the metadata of each frame: there are as many marks as frames, for
//! a page that went longer ago than memory has room is no use to know of, and nothing is allocated when memory is short. A page's mark
//! is in one of eight neighbouring places, where it replaces the oldest. Two pages with the same tag in the same places are mistaken for each other:
//! one in 2^29 times, and then a page stays longer than it deserves.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lock_api::RawMutex;

use crate::frame::FrameNumber;
use crate::frames::Frames;

/// Neighbouring places of which a page's mark may take one.
const PLACES: usize = 8;

/// A frame's part of what is remembered, of any page: a tag above, the clock below. Zero is nothing.
pub(crate) type Mark = AtomicU64;

/// Counts pages that left the idle list. Never zero in its lower half, so that no mark is.
#[derive(Clone, Copy)]
pub(crate) struct EvictionClock(u32);

impl EvictionClock {
    pub(crate) const fn new() -> Self {
        Self(1)
    }

    pub(crate) fn advance(&mut self) {
        self.0 = self.0.checked_add(1).unwrap_or(1);
    }

    fn since(self, earlier: u32) -> usize {
        self.0.wrapping_sub(earlier) as usize
    }
}

fn clock_of(mark: u64) -> u32 {
    mark as u32
}

fn tag_of(mark: u64) -> u32 {
    (mark >> 32) as u32
}

/// Where the marks of a page are, out of so many places, and its tag. The multiplier is odd and without pattern (2^64 divided by the golden
/// ratio): neighbouring pages come to lie far apart.
fn home(page: u64, places: usize) -> (usize, u32) {
    let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = hash ^ hash >> 32;
    let groups = (places / PLACES).max(1) as u64;
    (((hash % groups) as usize) * PLACES, (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32)
}

/// All under the lock of the page lists.
impl<L: RawMutex> Frames<L> {
    fn marks(&self, first: usize) -> impl Iterator<Item = &Mark> {
        let end = (first + PLACES).min(self.limit.load(Relaxed));
        (first..end).map(|index| &self.metadata(FrameNumber(index as u32)).eviction)
    }

    /// A page is taken back. (`page` is its identity among all pages of all objects.)
    pub(crate) fn remember_eviction(&self, page: u64, clock: EvictionClock) {
        let (first, tag) = home(page, self.limit.load(Relaxed));
        let age = |mark: &&Mark| match mark.load(Relaxed) {
            0 => usize::MAX,
            mark if tag_of(mark) == tag => usize::MAX,
            mark => clock.since(clock_of(mark)),
        };
        if let Some(oldest) = self.marks(first).max_by_key(age) {
            oldest.store(u64::from(tag) << 32 | u64::from(clock.0), Relaxed);
        }
    }

    /// A page comes. How many pages left the idle list since it went, if that is remembered; it is forgotten.
    pub(crate) fn take_eviction(&self, page: u64, clock: EvictionClock) -> Option<usize> {
        let (first, tag) = home(page, self.limit.load(Relaxed));
        let is_its = |mark: &&Mark| {
            let mark = mark.load(Relaxed);
            mark != 0 && tag_of(mark) == tag
        };
        let mark = self.marks(first).find(is_its)?.swap(0, Relaxed);
        Some(clock.since(clock_of(mark)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn pages_in_a_row_have_places_of_their_own() {
        let places = 1 << 12;
        let mut used: HashMap<usize, usize> = HashMap::new();
        (0..places as u64 / 4).for_each(|page| *used.entry(home(page, places).0).or_default() += 1);
        assert!(used.keys().all(|first| first + PLACES <= places));
        // A quarter as many pages as places: two in a group on average, and hardly ever more than it has room for.
        let lost: usize = used.values().map(|pages| pages.saturating_sub(PLACES)).sum();
        assert!(lost < places / 400, "{lost} of {} are lost", places / 4);
    }

    #[test]
    fn the_clock_goes_round_and_is_never_zero() {
        let mut clock = EvictionClock(u32::MAX - 1);
        let earlier = clock.0;
        clock.advance();
        clock.advance();
        assert_eq!(clock.0, 1);
        assert_eq!(clock.since(earlier), 3, "one too many where it goes round");
    }
}
