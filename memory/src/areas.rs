//! All areas of an address space, in a tree by address.
//!
//! Invariants: areas never overlap; neighbours that could be one area are one (so that their number, which is limited,
//! and `/proc/PID/maps` tell how the space was really built); `mapped_pages` is the sum of their lengths.
//!
//! The tree is an intrusive one: from an area it is a step or two to its neighbours, and areas are cut, joined and
//! given other rights where they are. (A `BTreeMap` took most of the time of `mmap` and `munmap`: each look at a
//! neighbour was a search of its own, and each insertion moved areas about.)
#![allow(unsafe_code, reason = "the macro that tells the tree where its link is in an area")]

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use intrusive_collections::rbtree::{Cursor, CursorMut};
use intrusive_collections::{Bound, KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use crate::address_space::AddressSpace;
use crate::area::{Area, AreaFlags};
use crate::environment::Environment;
use crate::error::Error;
use crate::mappings::Leaving;
use crate::range::{PAGE_SIZE, PageRange, USER_END};

/// Linux's default for `vm.max_map_count`.
const MAX_AREAS: usize = 65530;
/// Free space that stays between a stack that grows down and the mapping below it: 256 pages, as on Linux.
pub(crate) const STACK_GUARD: u64 = 256 * PAGE_SIZE;

intrusive_adapter!(ByStart<E> = Box<Area<E>>: Area<E> { link => RBTreeAtomicLink } where E: Environment);

impl<'a, E: Environment> KeyAdapter<'a> for ByStart<E> {
    type Key = u64;

    fn get_key(&self, area: &'a Area<E>) -> u64 {
        area.start()
    }
}

/// The areas of one address space.
pub(crate) struct Areas<E: Environment> {
    tree: RBTree<ByStart<E>>,
    count: usize,
    mapped_pages: u64,
    placement: Placement,
    /// Whose areas these are.
    space: Weak<AddressSpace<E>>,
}

/// What the last searches for free space taught: above `from` no gap is larger than `largest_above`.
#[derive(Clone, Copy)]
struct Placement {
    from: u64,
    largest_above: u64,
}

impl<E: Environment> Areas<E> {
    pub(crate) fn new(space: Weak<AddressSpace<E>>) -> Self {
        let placement = Placement { from: USER_END, largest_above: 0 };
        Self { tree: RBTree::new(ByStart::new()), count: 0, mapped_pages: 0, placement, space }
    }

    pub(crate) fn mapped_pages(&self) -> u64 {
        self.mapped_pages
    }

    /// Whose areas these are, while anybody refers to it.
    pub(crate) fn space(&self) -> Option<Arc<AddressSpace<E>>> {
        self.space.upgrade()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Area<E>> {
        self.tree.iter()
    }

    /// At the last area that starts at or below an address.
    fn at_or_below(&self, address: u64) -> Cursor<'_, ByStart<E>> {
        self.tree.upper_bound(Bound::Included(&address))
    }

    /// At the first area that ends above an address.
    fn ending_above(&self, address: u64) -> Cursor<'_, ByStart<E>> {
        let mut cursor = self.at_or_below(address);
        if cursor.get().is_none_or(|area| area.end() <= address) {
            // From "none" this goes to the first.
            cursor.move_next();
        }
        cursor
    }

    /// The area that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Area<E>> {
        self.at_or_below(address).get().filter(|area| address < area.end())
    }

    /// The first area that ends above an address (it may hold it).
    pub(crate) fn first_ending_above(&self, address: u64) -> Option<&Area<E>> {
        self.ending_above(address).get()
    }

    /// The area that starts nearest below an address (it may hold it).
    pub(crate) fn last_starting_below(&self, address: u64) -> Option<&Area<E>> {
        self.at_or_below(address.checked_sub(1)?).get()
    }

    /// The areas that overlap a range, in order.
    pub(crate) fn overlapping(&self, range: PageRange) -> impl Iterator<Item = &Area<E>> {
        let mut cursor = self.ending_above(range.start());
        core::iter::from_fn(move || {
            let area = cursor.get().filter(|area| area.start() < range.end())?;
            cursor.move_next();
            Some(area)
        })
    }

    /// Whether no area overlaps the range.
    pub(crate) fn is_free(&self, range: PageRange) -> bool {
        self.first_ending_above(range.start()).is_none_or(|area| area.start() >= range.end())
    }

    /// Whether every page of the range lies in an area.
    pub(crate) fn is_covered(&self, range: PageRange) -> bool {
        let mut next = range.start();
        for area in self.overlapping(range) {
            if area.start() > next {
                return false;
            }
            next = area.end();
        }
        next >= range.end()
    }

    /// Pages of the range that are mapped.
    pub(crate) fn mapped_pages_in(&self, range: PageRange) -> u64 {
        self.overlapping(range)
            .filter_map(|area| area.range().intersection(&range))
            .map(|part| part.pages())
            .sum()
    }

    /// The free space around a free range: from the end of the area below to the start of the one above.
    pub(crate) fn gap_around(&self, range: PageRange) -> PageRange {
        let below = self.at_or_below(range.start());
        let start = below.get().map_or(0, Area::end);
        let end = below.peek_next().get().map_or(USER_END, Area::start);
        PageRange::between(start.min(range.start()), end.max(range.end())).unwrap_or(range)
    }

    /// As [`Areas::gap_around`], when a range of one area will have been removed.
    pub(crate) fn gap_without(&self, range: PageRange) -> PageRange {
        let holder = self.at_or_below(range.start());
        let Some(area) = holder.get() else { return range };
        let start = match area.start() < range.start() {
            true => range.start(),
            false => holder.peek_prev().get().map_or(0, Area::end),
        };
        let end = match area.end() > range.end() {
            true => range.end(),
            false => holder.peek_next().get().map_or(USER_END, Area::start),
        };
        PageRange::between(start, end).unwrap_or(range)
    }

    /// Whether `more` areas may be added.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when that would be too many.
    pub(crate) fn check_count(&self, more: usize) -> Result<(), Error> {
        if self.count + more > MAX_AREAS { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    /// How many of a range's two ends lie inside an area.
    pub(crate) fn splits_at_ends(&self, range: PageRange) -> usize {
        let cuts_inside = |address| self.find(address).is_some_and(|area| area.start() < address);
        usize::from(cuts_inside(range.start())) + usize::from(cuts_inside(range.end()))
    }

    /// Adds an area where none is, and joins it with its neighbours if they are alike.
    pub(crate) fn insert(&mut self, mut area: Area<E>) {
        debug_assert!(self.is_free(area.range()));
        self.mapped_pages += area.range().pages();
        let mut cursor = self.tree.upper_bound_mut(Bound::Included(&area.start()));
        if let Some(below) = cursor.get().filter(|below| below.can_join(&area)) {
            below.set_end(area.end());
            below.inherit_pages(&area);
            self.count -= join_with_next(&mut cursor);
            return;
        }
        if let Some(above) = cursor.peek_next().get().filter(|above| area.can_join(above)) {
            // The key changes, but passes no other.
            above.set_start(area.start());
            above.inherit_pages(&area);
            return;
        }
        area.register(&self.space);
        cursor.insert_after(Box::new(area));
        self.count += 1;
    }

    /// Adds an area above all others, as it is (for a copy of a whole space).
    pub(crate) fn push(&mut self, mut area: Area<E>) {
        debug_assert!(self.tree.back().get().is_none_or(|last| last.end() <= area.start()));
        self.mapped_pages += area.range().pages();
        self.count += 1;
        area.register(&self.space);
        self.tree.back_mut().insert_after(Box::new(area));
    }

    /// What is about to be removed with a range, of objects, until its flush is over; `None` if nothing is there at all.
    pub(crate) fn leaving(&self, range: PageRange) -> Option<Vec<Leaving<E>>> {
        let mut overlapping = self.overlapping(range).peekable();
        overlapping.peek()?;
        Some(overlapping.filter_map(|area| Leaving::enter(area.backing()?, &self.space)).collect())
    }

    /// Takes a range out of the areas.
    pub(crate) fn remove(&mut self, range: PageRange) {
        let mut cursor = self.tree.upper_bound_mut(Bound::Included(&range.start()));
        if cursor.get().is_none_or(|area| area.end() <= range.start()) {
            cursor.move_next();
        }
        let mapped_before = self.mapped_pages;
        while let Some(area) = cursor.get().filter(|area| area.start() < range.end()) {
            let (start, end) = (area.start(), area.end());
            self.mapped_pages -= (end.min(range.end()) - start.max(range.start())) / PAGE_SIZE;
            if start >= range.start() && end <= range.end() {
                drop(cursor.remove());
                self.count -= 1;
                continue;
            }
            if start >= range.start() {
                area.set_start(range.end());
                break;
            }
            let rest =
                PageRange::between(range.end(), end.max(range.end())).map(|rest| area.with_range(rest));
            let rest = rest.map(|mut rest| {
                rest.register(&self.space);
                rest
            });
            area.set_end(range.start());
            if let Some(rest) = rest {
                cursor.insert_after(Box::new(rest));
                self.count += 1;
                break;
            }
            cursor.move_next();
        }
        if self.mapped_pages != mapped_before {
            self.note_freed(range);
        }
    }

    /// Changes every area in a range (areas that reach out of it are cut first), and joins what is alike afterwards.
    pub(crate) fn change(&mut self, range: PageRange, mut change: impl FnMut(&Area<E>)) {
        self.split_at(range.start());
        self.split_at(range.end());
        self.overlapping(range).for_each(&mut change);
        // The area below the range may have become like its neighbour, and so may each one up to the range's end.
        let mut cursor = self.tree.upper_bound_mut(Bound::Excluded(&range.start()));
        if cursor.is_null() {
            cursor.move_next();
        }
        while cursor.get().is_some_and(|area| area.start() < range.end()) {
            match join_with_next(&mut cursor) {
                0 => cursor.move_next(),
                joined => self.count -= joined,
            }
        }
    }

    /// Cuts the area that holds `address` in two there, unless it starts there.
    fn split_at(&mut self, address: u64) {
        let mut cursor = self.tree.upper_bound_mut(Bound::Excluded(&address));
        let Some(area) = cursor.get().filter(|area| address < area.end()) else { return };
        let mut above = area.with_range(PageRange::of_area(address, area.end()));
        // Entered before the other's end moves, so that a walk finds each address at least once.
        above.register(&self.space);
        area.set_end(address);
        cursor.insert_after(Box::new(above));
        self.count += 1;
    }

    /// Takes all areas out.
    pub(crate) fn take_all(&mut self) {
        *self = Self::new(self.space.clone());
    }

    /// Lets the area that starts at `start` start lower.
    pub(crate) fn grow_down(&mut self, start: u64, new_start: u64) {
        if let Some(area) = self.find(start) {
            area.set_start(new_start);
            self.mapped_pages += (start - new_start) / PAGE_SIZE;
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
        self.placement = Placement { from: top, largest_above: 0 };
        self.place_below(length, top)
    }

    /// The lowest gap with room for a new mapping of this length between two addresses.
    pub(crate) fn place_within(&self, length: u64, within: Range<u64>) -> Option<PageRange> {
        let mut above = self.ending_above(within.start);
        let mut start = within.start;
        loop {
            let next = above.get();
            let end = next.map_or(within.end, |area| gap_end_below(area).min(within.end));
            if end.saturating_sub(start) >= length {
                return PageRange::between(start, start + length);
            }
            start = next.filter(|area| area.end() < within.end)?.end();
            above.move_next();
        }
    }

    fn place_below(&mut self, length: u64, from: u64) -> Option<PageRange> {
        let mut largest = self.placement.largest_above;
        // `end` is where the free space below the areas seen so far ends; `below` is at the next area.
        let mut below = self.at_or_below(from);
        let above = below.peek_next().get();
        let mut end = above.map_or(from, |area| from.min(gap_end_below(area)));
        if below.get().is_some_and(|area| area.start() == from) {
            end = end.min(below.get().map_or(end, gap_end_below));
            below.move_prev();
        }
        loop {
            let neighbour = below.get();
            let floor = neighbour.map_or(LOWEST_PLACEMENT, |area| area.end().max(LOWEST_PLACEMENT));
            let gap = end.saturating_sub(floor);
            if gap >= length {
                self.placement = Placement { from: end, largest_above: largest };
                return PageRange::between(end - length, end);
            }
            largest = largest.max(gap);
            end = gap_end_below(neighbour?);
            below.move_prev();
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

/// Joins the area at the cursor with the next one, if they are alike; says how many areas fewer there are.
fn join_with_next<E: Environment>(cursor: &mut CursorMut<'_, ByStart<E>>) -> usize {
    let Some(area) = cursor.get() else { return 0 };
    let next = cursor.peek_next();
    let Some(next) = next.get().filter(|next| area.can_join(next)) else { return 0 };
    area.set_end(next.end());
    area.inherit_pages(next);
    cursor.move_next();
    drop(cursor.remove());
    cursor.move_prev();
    1
}

/// No mapping is placed below this address unless the program asks for it (Linux's `vm.mmap_min_addr`).
pub(crate) const LOWEST_PLACEMENT: u64 = 65536;

/// Where the free space below an area ends: at its start, or a guard gap lower for a stack that grows down.
pub(crate) fn gap_end_below<E: Environment>(area: &Area<E>) -> u64 {
    if area.has_flag(AreaFlags::GROWS_DOWN) { area.start().saturating_sub(STACK_GUARD) } else { area.start() }
}
