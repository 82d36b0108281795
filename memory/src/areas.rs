//! All areas of an address space, by start address.
//!
//! Invariants: areas never overlap; neighbours that could be one area are one (so that their number, which is limited,
//! and `/proc/PID/maps` tell how the space was really built); `mapped_pages` is the sum of their lengths.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::area::{Area, AreaFlags};
use crate::environment::Environment;
use crate::error::Error;
use crate::range::{PAGE_SIZE, PageRange, USER_END};

/// Linux's default for `vm.max_map_count`.
const MAX_AREAS: usize = 65530;
/// Free space that stays between a stack that grows down and the mapping below it: 256 pages, as on Linux.
pub(crate) const STACK_GUARD: u64 = 256 * PAGE_SIZE;

/// The areas of one address space.
pub(crate) struct Areas<E: Environment> {
    by_start: BTreeMap<u64, Area<E>>,
    mapped_pages: u64,
    placement: Placement,
}

/// What the last searches for free space taught: above `from` no gap is larger than `largest_above`.
#[derive(Clone, Copy)]
struct Placement {
    from: u64,
    largest_above: u64,
}

impl<E: Environment> Areas<E> {
    pub(crate) fn new() -> Self {
        let placement = Placement {
            from: USER_END,
            largest_above: 0,
        };
        Self {
            by_start: BTreeMap::new(),
            mapped_pages: 0,
            placement,
        }
    }

    pub(crate) fn mapped_pages(&self) -> u64 {
        self.mapped_pages
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Area<E>> {
        self.by_start.values()
    }

    /// The area that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Area<E>> {
        let (_, area) = self.by_start.range(..=address).next_back()?;
        area.range.contains(address).then_some(area)
    }

    /// The first area that ends above an address (it may hold it).
    pub(crate) fn first_ending_above(&self, address: u64) -> Option<&Area<E>> {
        match self.find(address) {
            Some(area) => Some(area),
            None => self.by_start.range(address..).next().map(|(_, area)| area),
        }
    }

    /// The areas that overlap a range, in order.
    pub(crate) fn overlapping(&self, range: PageRange) -> impl Iterator<Item = &Area<E>> {
        let first = self
            .find(range.start())
            .map_or(range.start(), |area| area.range.start());
        self.by_start.range(first..range.end()).map(|(_, area)| area)
    }

    /// Where the first area that overlaps a range starts.
    fn first_overlapping(&self, range: PageRange) -> Option<u64> {
        self.overlapping(range).next().map(|area| area.range.start())
    }

    /// Whether no area overlaps the range.
    pub(crate) fn is_free(&self, range: PageRange) -> bool {
        self.overlapping(range).next().is_none()
    }

    /// Whether every page of the range lies in an area.
    pub(crate) fn is_covered(&self, range: PageRange) -> bool {
        let mut next = range.start();
        for area in self.overlapping(range) {
            if area.range.start() > next {
                return false;
            }
            next = area.range.end();
        }
        next >= range.end()
    }

    /// Pages of the range that are mapped.
    pub(crate) fn mapped_pages_in(&self, range: PageRange) -> u64 {
        self.overlapping(range)
            .filter_map(|area| area.range.intersection(&range))
            .map(|part| part.pages())
            .sum()
    }

    /// The free space around a free range: from the end of the area below to the start of the one above.
    pub(crate) fn gap_around(&self, range: PageRange) -> PageRange {
        let below = self
            .by_start
            .range(..range.start())
            .next_back()
            .map_or(0, |(_, area)| area.range.end());
        let above = self
            .by_start
            .range(range.end()..)
            .next()
            .map_or(USER_END, |(start, _)| *start);
        PageRange::between(below.min(range.start()), above).unwrap_or(range)
    }

    /// Whether `more` areas may be added.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when that would be too many.
    pub(crate) fn check_count(&self, more: usize) -> Result<(), Error> {
        if self.by_start.len() + more > MAX_AREAS {
            Err(Error::OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// How many areas more there are after cutting `range` out of their middle (0 or 1), or changing it (0 to 2).
    pub(crate) fn splits_at_ends(&self, range: PageRange) -> usize {
        let cuts_inside = |address| {
            self.find(address)
                .is_some_and(|area| area.range.start() < address)
        };
        usize::from(cuts_inside(range.start())) + usize::from(cuts_inside(range.end()))
    }

    /// Adds an area where none is, and joins it with its neighbours if they are alike.
    pub(crate) fn insert(&mut self, mut area: Area<E>) {
        debug_assert!(self.is_free(area.range));
        self.mapped_pages += area.range.pages();
        if let Some(next) = self.by_start.get(&area.range.end())
            && area.can_join(next)
        {
            let next_start = area.range.end();
            area.join(next);
            self.by_start.remove(&next_start);
        }
        if let Some((_, before)) = self.by_start.range_mut(..area.range.start()).next_back()
            && before.can_join(&area)
        {
            before.join(&area);
            return;
        }
        self.by_start.insert(area.range.start(), area);
    }

    /// Takes a range out of the areas for good, and returns what lay in it, in order.
    pub(crate) fn remove(&mut self, range: PageRange) -> Vec<Area<E>> {
        let removed = self.cut(range);
        if !removed.is_empty() {
            self.note_freed(range);
        }
        removed
    }

    /// Cuts a range out of the areas, to be put back changed, and returns what lay in it, in order.
    pub(crate) fn cut(&mut self, range: PageRange) -> Vec<Area<E>> {
        let mut cut = Vec::new();
        while let Some(start) = self.first_overlapping(range) {
            let Some(area) = self.by_start.remove(&start) else {
                break;
            };
            let Some(inside) = area.range.intersection(&range) else {
                break;
            };
            if let Some(below) = PageRange::between(area.range.start(), inside.start()) {
                self.by_start.insert(below.start(), area.part(below));
            }
            if let Some(above) = PageRange::between(inside.end(), area.range.end()) {
                self.by_start.insert(above.start(), area.part(above));
            }
            self.mapped_pages -= inside.pages();
            cut.push(if inside == area.range {
                area
            } else {
                area.part(inside)
            });
        }
        cut
    }

    /// Takes all areas out.
    pub(crate) fn take_all(&mut self) {
        self.by_start = BTreeMap::new();
        self.mapped_pages = 0;
        self.placement = Placement {
            from: USER_END,
            largest_above: 0,
        };
    }

    /// Lets the area that starts at `start` start lower.
    pub(crate) fn grow_down(&mut self, start: u64, new_start: u64) {
        if let Some(mut area) = self.by_start.remove(&start)
            && let Some(range) = PageRange::between(new_start, area.range.end())
        {
            self.mapped_pages += (start - new_start) / PAGE_SIZE;
            area.range = range;
            self.by_start.insert(new_start, area);
        }
    }

    /// Where a new mapping of this length goes: the highest gap below `top` that has room.
    pub(crate) fn place(&mut self, length: u64, top: u64) -> Option<PageRange> {
        if length > self.placement.largest_above {
            let from = self.placement.from.min(top);
            if let Some(found) = self.place_below(length, from) {
                return Some(found);
            }
        }
        // All gaps above are known only by their largest: look at them again.
        self.placement = Placement {
            from: top,
            largest_above: 0,
        };
        self.place_below(length, top)
    }

    fn place_below(&mut self, length: u64, from: u64) -> Option<PageRange> {
        let mut largest = self.placement.largest_above;
        // The free space under the lowest area seen so far ends here.
        let mut end = self.lowest_allowed_end(from);
        let mut below = self.by_start.range(..end).rev().map(|(_, area)| area);
        loop {
            let neighbour = below.next();
            let floor = neighbour.map_or(LOWEST_PLACEMENT, |area| area.range.end().max(LOWEST_PLACEMENT));
            let gap = end.saturating_sub(floor);
            if gap >= length {
                self.placement = Placement {
                    from: end,
                    largest_above: largest,
                };
                return PageRange::between(end - length, end);
            }
            largest = largest.max(gap);
            end = gap_end_below(neighbour?);
        }
    }

    /// `from`, or the end of the free space below the area that lies across or just above it.
    fn lowest_allowed_end(&self, from: u64) -> u64 {
        match self.first_ending_above(from.saturating_sub(1)) {
            Some(area) => from.min(gap_end_below(area)),
            None => from,
        }
    }

    /// A range became free: the next search must not start below it.
    fn note_freed(&mut self, range: PageRange) {
        let gap = self.gap_around(range);
        if gap.end() > self.placement.from {
            self.placement.largest_above = self.placement.largest_above.max(gap.length());
        }
    }
}

/// No mapping is placed below this address unless the program asks for it (Linux's `vm.mmap_min_addr`).
pub(crate) const LOWEST_PLACEMENT: u64 = 65536;

/// Where the free space below an area ends: at its start, or a guard gap lower for a stack that grows down.
pub(crate) fn gap_end_below<E: Environment>(area: &Area<E>) -> u64 {
    if area.flags.contains(AreaFlags::GROWS_DOWN) {
        area.range.start().saturating_sub(STACK_GUARD)
    } else {
        area.range.start()
    }
}
