//! Moving and resizing mappings: `mremap`. How pages get from one place to another is in `relocation.rs`.

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::environment::Environment;
use crate::error::Error;
use crate::map::{Place, find_place};
use crate::mistake::{Mistake, is_made};
use crate::monitor::{Event, Monitor, Wishes};
use crate::range::{PAGE_SIZE, PageRange, USER_END, is_aligned, round_down};

/// What `mremap` is asked for. The numbers are the program's, unchecked.
#[derive(Clone, Copy, Debug)]
pub struct RemapRequest {
    /// Where the mapping starts.
    pub address: u64,
    /// How many bytes of it; 0 makes a second mapping of the same shared pages.
    pub old_length: u64,
    /// How many bytes it shall have.
    pub new_length: u64,
    /// It may move if it must (`MREMAP_MAYMOVE`).
    pub may_move: bool,
    /// Where it moves to, if it moves.
    pub to: MoveTo,
    /// Move the pages, but leave the old mapping in place, empty (`MREMAP_DONTUNMAP`).
    pub keep_source: bool,
}

/// Where a mapping moves to.
#[derive(Clone, Copy, Debug)]
pub enum MoveTo {
    /// Anywhere; where only a move will do (`MREMAP_DONTUNMAP`), preferably here. 0 is no preference.
    Hint(u64),
    /// It must move here, in place of whatever is there (`MREMAP_FIXED`).
    Fixed(u64),
}

impl<E: Environment> AddressSpace<E> {
    /// Resizes or moves a mapping; says where it is then.
    ///
    /// # Errors
    /// [`Error::Invalid`] for arguments that make no sense together, [`Error::NotMapped`] where nothing is mapped or
    /// the range spans more than one mapping, [`Error::Again`] if too much would be locked, [`Error::OutOfMemory`] for lack of room or
    /// memory.
    pub fn remap(&self, request: RemapRequest) -> Result<u64, Error> {
        let request = checked(request)?;
        let mut layout = self.exclusive();
        let start = self.remap_checked(&mut layout, request)?;
        let flags = layout.areas.find(start).map_or(AreaFlags::empty(), Area::flags);
        drop(layout);
        // Who only shrinks may have named any length.
        let has_grown = request.new_length > request.old_length;
        let growth =
            has_grown.then(|| PageRange::between(start + request.old_length, start + request.new_length));
        self.bring_in_growth(flags, growth.flatten());
        Ok(start)
    }

    fn remap_checked(&self, layout: &mut Layout<E>, request: RemapRequest) -> Result<u64, Error> {
        let RemapRequest { address, old_length, new_length, .. } = request;
        if layout.areas.find(address).is_none() {
            return Err(Error::NotMapped);
        }
        if matches!(request.to, MoveTo::Fixed(_)) || request.keep_source {
            return self.remap_elsewhere(layout, request);
        }
        if new_length <= old_length {
            self.shrink(layout, request)?;
            return Ok(address);
        }
        self.check_resize(layout, request)?;
        if new_length > USER_END {
            return Err(Error::OutOfMemory);
        }
        if let Some(growth) = room_to_grow(layout, request) {
            let area = layout.areas.find(address).map(|area| area.extended_by(growth));
            layout.areas.insert(area.ok_or(Error::NotMapped)?);
            return Ok(address);
        }
        if !request.may_move {
            return Err(Error::OutOfMemory);
        }
        let target = find_place(layout, Place::Anywhere { hint: 0 }, new_length, self.apart(new_length))?;
        self.move_mapping(layout, request, target, old_length)
    }

    fn remap_elsewhere(&self, layout: &mut Layout<E>, mut request: RemapRequest) -> Result<u64, Error> {
        let (MoveTo::Fixed(address) | MoveTo::Hint(address)) = request.to;
        // Linux checks a hint as strictly as a demand.
        let is_sane = is_aligned(address) && request.new_length <= USER_END - address.min(USER_END);
        let source_end = request.address.wrapping_add(request.old_length);
        let overlaps = address < source_end && request.address < address.saturating_add(request.new_length);
        if !is_sane || overlaps {
            return Err(Error::Invalid);
        }
        let place = match request.to {
            MoveTo::Hint(hint) => Place::Anywhere { hint },
            MoveTo::Fixed(address) => {
                let target = PageRange::new(address, request.new_length).map_err(|_| Error::Invalid)?;
                layout.areas.check_count(2)?;
                self.remove(layout, target, Cause::Mremap);
                Place::Fixed(address)
            }
        };
        let told_length = request.old_length;
        if request.old_length > request.new_length {
            self.shrink(layout, request)?;
            request.old_length = request.new_length;
        }
        self.check_resize(layout, request)?;
        let target = find_place(layout, place, request.new_length, self.apart(request.new_length))?;
        self.move_mapping(layout, request, target, told_length)
    }

    /// Unmaps what lies behind the new length.
    fn shrink(&self, layout: &mut Layout<E>, request: RemapRequest) -> Result<(), Error> {
        let RemapRequest { address, old_length, new_length, .. } = request;
        if old_length > new_length {
            let surplus = PageRange::new(address.wrapping_add(new_length), old_length - new_length);
            self.remove(layout, surplus.map_err(|_| Error::Invalid)?, Cause::Mremap);
        }
        Ok(())
    }

    fn check_resize(&self, layout: &Layout<E>, request: RemapRequest) -> Result<(), Error> {
        let area = layout.areas.find(request.address).ok_or(Error::NotMapped)?;
        if request.old_length == 0 && !area.is_shared() {
            return Err(Error::Invalid);
        }
        if request.old_length > area.end() - request.address {
            return Err(Error::NotMapped);
        }
        let kept = if request.keep_source { 0 } else { request.old_length };
        let growth = (request.new_length - kept) / crate::PAGE_SIZE;
        let larger = request.new_length.saturating_sub(request.old_length) / crate::PAGE_SIZE;
        self.check_growth_of_locked(layout, area.flags(), larger)?;
        self.check_expansion(layout, growth)?;
        if area.is_accounted() { self.check_commitment(layout, growth) } else { Ok(()) }
    }

    fn move_mapping(
        &self,
        layout: &mut Layout<E>,
        request: RemapRequest,
        target: PageRange,
        told_length: u64,
    ) -> Result<u64, Error> {
        layout.areas.check_count(3)?;
        let source = PageRange::new(request.address, request.old_length).ok();
        if let Some(source) = source {
            self.prepare_relocation(layout, source, target)?;
        }
        let area = layout.areas.find(request.address).ok_or(Error::NotMapped)?;
        let moved = area.moved(request.address, target);
        let was_guarded = area.has_flag(AreaFlags::WATCHED_STORES);
        let monitor = layout.monitors.of(area).cloned();
        let stays_watched = monitor.filter(|monitor| monitor.wishes().contains(Wishes::REMAP));
        match &stays_watched {
            Some(monitor) => {
                let (from, to) = (request.address, target.start());
                layout.announce(monitor, Event::Remap { from, to, length: told_length });
            }
            None => moved.clear_watch(),
        }
        layout.areas.insert(moved);
        if let Some(source) = source {
            self.relocate(layout, source, target.start(), request.keep_source)?;
            if request.keep_source {
                // What stays is empty, and locks nothing.
                layout.areas.change(source, |area| area.set_flags(area.flags() - AreaFlags::LOCKS));
            }
        }
        if was_guarded && stays_watched.is_none() && !is_made(Mistake::GuardKeptWhenMoved) {
            // Linux once left them guarded, with nobody to ask (CVE-2025-21696).
            let area = layout.areas.find(target.start()).ok_or(Error::NotMapped)?;
            self.unguard_pages(&layout.tables, area, target);
        }
        Ok(target.start())
    }
}

/// Checks the numbers alone, and rounds the lengths to pages; what is too large for that wraps to nothing, as on Linux.
fn checked(mut request: RemapRequest) -> Result<RemapRequest, Error> {
    let rounded = |length: u64| round_down(length.wrapping_add(PAGE_SIZE - 1));
    request.old_length = rounded(request.old_length);
    request.new_length = rounded(request.new_length);
    if !is_aligned(request.address) || request.new_length == 0 {
        return Err(Error::Invalid);
    }
    Ok(request)
}

/// The range by which the mapping can grow where it is, if nothing is in the way.
fn room_to_grow<E: Environment>(layout: &Layout<E>, request: RemapRequest) -> Option<PageRange> {
    let area = layout.areas.find(request.address)?;
    let end = request.address + request.old_length;
    let growth = PageRange::new(end, request.new_length - request.old_length).ok()?;
    let next = layout.areas.first_ending_above(end);
    // Also right below a stack: as on Linux, its gap keeps only new mappings away.
    let is_free = next.is_none_or(|next| growth.end() <= next.start());
    (area.end() == end && is_free).then_some(growth)
}

impl<E: Environment> Area<E> {
    /// An area like this for `range`, which begins where this ends.
    fn extended_by(&self, range: PageRange) -> Self {
        self.with_range(range)
    }
}
