//! Making mappings: `mmap`.
//!
//! A new mapping is only an area; its entries come with the first accesses. So mapping needs no flush, but for
//! `MAP_FIXED` over something older: then the old pages are removed and flushed before the new area exists.

use core::ops::Range;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags, Source};
use crate::areas::{LOWEST_PLACEMENT, STACK_GUARD, gap_end_below};
use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::error::Error;
use crate::homes::place_apart;
use crate::range::{PageRange, RangeError, USER_END, round_down, round_up};
use crate::rights::Rights;

/// Mappings without an address of their own go below this. The space above is the stack's: Linux leaves at least
/// 128 MiB for it.
const PLACEMENT_TOP: u64 = USER_END - (128 << 20);
/// Where mappings go that shall lie low.
const LOW_PLACEMENT: Range<u64> = 0x4000_0000..0x8000_0000;

/// Where a mapping shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere; at the hint if that is free, a hint of 0 being none.
    Anywhere {
        /// The address that the program would like.
        hint: u64,
    },
    /// Where 31 bits of an address are enough (`MAP_32BIT`), as low as possible; at the hint if that is such a place and free.
    Low {
        /// The address that the program would like.
        hint: u64,
    },
    /// Exactly here, in place of whatever is there (`MAP_FIXED`).
    Fixed(u64),
    /// Exactly here, if nothing is there (`MAP_FIXED_NOREPLACE`).
    FixedIfFree(u64),
}

/// What to map.
pub struct MapRequest<E: Environment> {
    /// Where.
    pub place: Place,
    /// How many bytes; rounded up to pages.
    pub length: u64,
    /// What it allows.
    pub rights: Rights,
    /// The most that `mprotect` may later allow.
    pub may: Rights,
    /// [`AreaFlags::SHARED`] needs an object.
    pub flags: AreaFlags,
    /// The object, and the index of the first page of it; `None` for zeroes of the mapping's own.
    pub object: Option<(BackingRef<E>, u64)>,
    /// Bring the pages in now (`MAP_POPULATE`). That this may fail half-way is no error.
    pub populate: bool,
}

impl<E: Environment> AddressSpace<E> {
    /// Makes a mapping; says where it is.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a length of 0, a fixed address that is no page's, or a shared mapping of nothing;
    /// [`Error::Exists`] as [`Place::FixedIfFree`] asks; [`Error::Permission`] and [`Error::Again`] for what is to be locked and may
    /// not be, or would be too much; [`Error::OutOfMemory`] for the rest: no room, too many areas,
    /// over a limit, or more memory than could ever be had.
    pub fn map(&self, request: MapRequest<E>) -> Result<PageRange, Error> {
        let mut layout = self.exclusive();
        let populate = request.populate;
        let (range, flags) = self.map_in(&mut layout, request)?;
        drop(layout);
        if populate || flags.brings_in() {
            // The mapping stands whether or not its pages could be had.
            let _ = self.bring_in_areas(range);
        }
        Ok(range)
    }

    /// As [`AddressSpace::map`], but without bringing pages in; says also what the area's flags are. Nobody watches it, whatever is asked for.
    pub(crate) fn map_in(
        &self,
        layout: &mut Layout<E>,
        request: MapRequest<E>,
    ) -> Result<(PageRange, AreaFlags), Error> {
        if request.length == 0 || (request.flags.contains(AreaFlags::SHARED) && request.object.is_none()) {
            return Err(Error::Invalid);
        }
        let length = round_up(request.length).ok_or(Error::OutOfMemory)?;
        layout.areas.check_count(1)?;
        let apart = self.apart(length);
        let range = find_place(layout, request.place, length, apart)?;
        if request.flags.contains(AreaFlags::LOCKED) {
            self.check_locking()?;
        }
        let flags = request.flags.difference(AreaFlags::WATCHED) | layout.locks_to_come;
        self.check_growth_of_locked(layout, flags, range.pages())?;
        let source = match request.object {
            Some((backing, first_page)) => Source::object(backing, first_page, range.start()),
            None => Source::Anonymous,
        };
        let area = Area::new(range, request.rights, request.may, flags, source);
        self.check_expansion(layout, range.pages() - layout.areas.mapped_pages_in(range))?;
        if area.is_accounted() {
            self.check_commitment(layout, range.pages())?;
        }
        if let Place::Fixed(_) = request.place {
            self.remove(layout, range, Cause::Mmap);
        }
        layout.areas.insert(area);
        Ok((range, flags))
    }

    /// Whether a mapping of `length` bytes can go where it shall.
    ///
    /// # Errors
    /// As [`AddressSpace::map`] would say of the place; where it goes anywhere, only when the length is hopeless.
    pub(crate) fn check_place(&self, place: Place, length: u64) -> Result<(), Error> {
        match place {
            Place::Anywhere { .. } | Place::Low { .. } if length > USER_END => Err(Error::OutOfMemory),
            Place::Anywhere { .. } | Place::Low { .. } => Ok(()),
            Place::Fixed(address) => fixed_range(address, length).map(|_| ()),
            Place::FixedIfFree(address) => {
                let range = fixed_range(address, length)?;
                if self.is_free(range) { Ok(()) } else { Err(Error::Exists) }
            }
        }
    }

    /// Whether a mapping at `range` would meet nothing (for loaders that choose addresses themselves).
    pub fn is_free(&self, range: PageRange) -> bool {
        self.shared().areas.is_free(range)
    }
}

/// Decides where a mapping of `length` bytes goes; if that is left open, apart from what other threads map than this one.
pub(crate) fn find_place<E: Environment>(
    layout: &mut Layout<E>,
    place: Place,
    length: u64,
    apart: Option<u64>,
) -> Result<PageRange, Error> {
    match place {
        Place::Fixed(address) => fixed_range(address, length),
        Place::FixedIfFree(address) => {
            let range = fixed_range(address, length)?;
            if layout.areas.is_free(range) { Ok(range) } else { Err(Error::Exists) }
        }
        Place::Anywhere { hint } => {
            // A hint is rounded down, so the lowest ones are none.
            let hint = round_down(hint);
            if hint != 0
                && let Some(range) = hinted(layout, hint, length)
            {
                return Ok(range);
            }
            let apart = apart.and_then(|thread| place_apart(layout, length, thread, PLACEMENT_TOP));
            apart.or_else(|| layout.areas.place(length, PLACEMENT_TOP)).ok_or(Error::OutOfMemory)
        }
        Place::Low { hint } => {
            let hinted = hinted(layout, round_down(hint), length);
            let low = hinted.filter(|range| round_down(hint) != 0 && range.end() <= LOW_PLACEMENT.end);
            low.or_else(|| layout.areas.place_within(length, LOW_PLACEMENT)).ok_or(Error::OutOfMemory)
        }
    }
}

/// The range that a fixed address asks for. Linux looks at its end first.
fn fixed_range(address: u64, length: u64) -> Result<PageRange, Error> {
    match PageRange::new(address, length) {
        Ok(range) => Ok(range),
        Err(RangeError::TooHigh) => Err(Error::OutOfMemory),
        Err(_) if address.checked_add(length).is_none_or(|end| end > USER_END) => Err(Error::OutOfMemory),
        Err(_) => Err(Error::Invalid),
    }
}

/// The range at a hint, if it is free and leaves room below a stack above it and above a stack below it.
fn hinted<E: Environment>(layout: &Layout<E>, hint: u64, length: u64) -> Option<PageRange> {
    let range = PageRange::new(hint.max(LOWEST_PLACEMENT), length).ok()?;
    if !layout.areas.is_free(range) {
        return None;
    }
    let above = layout.areas.first_ending_above(range.end());
    above.is_none_or(|area| range.end() <= gap_end_below(area)).then_some(range)
}

/// Whether a stack may start at `new_start`, with nothing from there to where it starts now: the nearest area below must be another stack,
/// or such that nobody can reach, or a guard gap away. As on Linux, what lies behind that area does not matter.
pub(crate) fn has_guard_gap<E: Environment>(layout: &Layout<E>, new_start: u64) -> bool {
    layout.areas.last_starting_below(new_start).is_none_or(|area| {
        area.has_flag(AreaFlags::GROWS_DOWN)
            || area.rights().is_empty()
            || new_start.saturating_sub(area.end()) >= STACK_GUARD
    })
}
