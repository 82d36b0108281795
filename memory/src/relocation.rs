//! Moving what is mapped from one range to another: entries, and whole tables and large pages where source and target are aligned alike.
//!
//! An entry is taken out of its old place (atomic exchange) and what came back is put at the new one. Where all that a table maps
//! moves, and nothing is hooked in at the new place, the pointer to the table moves instead, and with it 512 entries, or 512 tables.
//!
//! **The hole.** An entry carries the frame's reference with it. Whoever finds the page at its new address may drop that
//! reference, flush that address, and give the frame away, while some CPU still reaches it through the old one
//! (CVE-2018-18281). A table's old upper entry is the same once more: with it in its caches a walker finds pages in the
//! table, at their old addresses, long after it has moved. And who looks for a page at its new address before it has arrived, and at the
//! old one after it has left, misses it.
//!
//! **What closes it.** Who may act on a page in the middle of a move? Not page faults, nor other calls: a move holds the area
//! lock exclusively. Only those who come by the reverse way, from a frame or an object to the addresses that show it, without
//! that lock. They hold the lock of the way by which they come, shared, from their first look until their flush is over: the
//! object's list of its mappings (`mappings.rs`), or, for pages of no object, the space's *lock of places*. A move
//! holds both exclusively from before its first change until its one flush is over. So a reverse walk sees the space as it was before
//! or as it is afterwards, when no CPU has anything of the old addresses. That asks nothing of the backend (no generations, no gap
//! rule), and one call is one round of interrupts, of whatever size. `docs/design/0014-table-moves.md` weighs it against others.
//!
//! **Without the mechanism `moves`** each step has a flush of its own, and lets go of both locks after it: as Linux does it, to be compared
//! with. Between two steps a reverse walk finds each page in one of its two places, whole.
//!
//! **The target** may be seen before the flush: nothing was mapped there, so nothing stale can contradict it, and it leads to
//! the same frames as the old addresses do. Programs come to it by hardware walks only; a fault waits for the area lock.
//!
//! **Nothing fails in the middle.** All tables that the move needs are made before it begins. The reverse walks may take away from the
//! source meanwhile, but nothing adds to it or to the target, so what was made is enough.

use coherence::Cause;
use lock_api::RwLockWriteGuard;

use crate::address_space::{AddressSpace, Layout};
use crate::area::Area;
use crate::changes::Changes;
use crate::entry::{Entry, LARGE_PAGE_SIZE};
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::large_entry::TakenOut;
use crate::mappings::List;
use crate::mistake::{Mistake, is_made};
use crate::object::MemoryObject;
use crate::page_table::{LEAF_SPAN, PageTable, span};
use crate::range::{PAGE_SIZE, PageRange};
use crate::unmap::{has_spare_tables, take_tables};

/// The highest level of a table whose entries move: they map 1 GiB each.
const HIGHEST_MOVED: usize = 2;

/// The next step of a move.
enum Step {
    /// Nothing is mapped in so many bytes.
    Skip(u64),
    /// The pointer to a table: this entry of a table of this level.
    Table(usize, Entry),
    /// A large page, to where there is room for one.
    Large,
    /// A large page, to where it must be in pieces.
    Pieces,
    /// The entries in so many bytes, for which one leaf table is used on each side.
    Entries(u64),
}

/// A move under way.
struct Relocation<'a, E: Environment> {
    space: &'a AddressSpace<E>,
    /// The object whose pages move, if they are of one.
    object: Option<&'a MemoryObject<E>>,
    changes: Changes<'a, E>,
    /// `None` only by mistake.
    alone: Option<Alone<'a, E>>,
    /// Whether one flush at the end serves all steps.
    once: bool,
}

/// While this is held, reverse walks wait.
struct Alone<'a, E: Environment> {
    _mappings: Option<RwLockWriteGuard<'a, E::AreaLock, List<E>>>,
    _places: RwLockWriteGuard<'a, E::AreaLock, ()>,
}

impl<E: Environment> AddressSpace<E> {
    /// Makes the tables that moving `source` to `target` needs.
    pub(crate) fn prepare_relocation(
        &self,
        layout: &mut Layout<E>,
        source: PageRange,
        target: PageRange,
    ) -> Result<(), OutOfMemory> {
        if is_made(Mistake::MoveGivenUpInTheMiddle) {
            return Ok(());
        }
        let tables = &layout.tables;
        let prepared = try_for_each_step(tables, source, target.start(), |step, _, to| match step {
            Step::Skip(_) => Ok(()),
            Step::Table(level, _) => tables.create_down_to(to, level),
            Step::Large => tables.create_down_to(to, 1),
            Step::Pieces => {
                tables.create_down_to(to, 0)?;
                tables.create_down_to(to + LARGE_PAGE_SIZE - PAGE_SIZE, 0)
            }
            Step::Entries(_) => tables.create_down_to(to, 0),
        });
        if prepared.is_err() {
            let mut changes = self.changes(Cause::Mremap);
            self.take_spare_tables(layout, target, &mut changes);
            changes.finish();
        }
        prepared
    }

    /// Moves all that is in `source` to `target`, where the tables are prepared and nothing is mapped, and takes out the area and
    /// the tables of the source, unless it is kept. When this returns, the flush is over.
    ///
    /// # Errors
    /// None, after the preparation.
    pub(crate) fn relocate(
        &self,
        layout: &mut Layout<E>,
        source: PageRange,
        target: u64,
        keep_source: bool,
    ) -> Result<(), OutOfMemory> {
        let area = layout.areas.find(target);
        let is_anonymous = area.is_some_and(Area::is_private_anonymous);
        let backing = area.and_then(Area::backing).cloned();
        let mut relocation = Relocation::begin(self, backing.as_ref().and_then(|backing| backing.object()));
        self.cut(&layout.tables, source, &mut relocation.changes);
        try_for_each_step(&layout.tables, source, target, |step, part, to| {
            relocation.make(&layout.tables, step, part, to)
        })?;
        let gap = layout.areas.gap_without(source);
        if !keep_source && has_spare_tables(source, gap) {
            take_tables(layout, source, gap, &mut relocation.changes);
        }
        relocation.finish(is_anonymous);
        if !keep_source {
            layout.announce_unmap(source);
            layout.areas.remove(source);
        }
        Ok(())
    }
}

impl<'a, E: Environment> Relocation<'a, E> {
    fn begin(space: &'a AddressSpace<E>, object: Option<&'a MemoryObject<E>>) -> Self {
        // Announced before anything is locked, and so before the first change.
        let changes = space.changes(Cause::Mremap);
        let once = space.environment.coherence().switches().moves;
        let mut relocation = Self { space, object, changes, alone: None, once };
        if !is_made(Mistake::MovedBesideReverseWalks) && !is_made(Mistake::MovedTableReadTooEarly) {
            relocation.keep_others_off();
        }
        // Once is enough until others are let in: who could change these entries in a batch is kept off.
        relocation.changes.settle();
        relocation
    }

    /// Flushes what was moved so far, and lets those who wait for these pages have them for a moment. The next step is decided after it.
    fn let_others_in(&mut self) {
        if is_made(Mistake::MoveFlushedAfterUnlock) {
            self.alone = None;
        }
        self.changes.flush();
        self.alone = None;
        self.space.environment.yield_if_needed();
        self.keep_others_off();
        self.changes.settle();
    }

    fn keep_others_off(&mut self) {
        let mappings = self.object.map(|object| object.mappings().exclusive());
        self.alone = Some(Alone { _mappings: mappings, _places: self.space.places.write() });
    }

    /// Makes one step, which moves `part` to `to`.
    fn make(
        &mut self,
        tables: &PageTable<E>,
        step: Step,
        part: PageRange,
        to: u64,
    ) -> Result<(), OutOfMemory> {
        if is_made(Mistake::MovedTableReadTooEarly) && self.alone.is_none() {
            self.keep_others_off();
        }
        match step {
            Step::Skip(_) => return Ok(()),
            Step::Table(level, table) => {
                tables.replace_upper(part.start(), level, Entry::EMPTY);
                self.changes.table_moved(part.start(), level, table.frame());
                tables.replace_upper(to, level, table);
            }
            Step::Large => self.move_large(tables, part, to)?,
            Step::Pieces => self.move_pieces(tables, part, to)?,
            Step::Entries(_) => self.move_entries(tables, part, to)?,
        }
        // Between two steps no table is locked.
        if self.once {
            self.space.environment.yield_if_needed();
        } else {
            self.let_others_in();
        }
        Ok(())
    }

    fn move_entries(&mut self, tables: &PageTable<E>, part: PageRange, to: u64) -> Result<(), OutOfMemory> {
        let Some(mut from_leaf) = tables.leaf(part.start()) else { return Ok(()) };
        // One table for both is locked once. Two are locked in any order: only holders of the exclusive area lock ever hold
        // two tables of one space.
        let is_same = part.start() / LEAF_SPAN == to / LEAF_SPAN;
        let mut to_leaf = if is_same { None } else { tables.leaf_or_create(to)? };
        debug_assert!(is_same || to_leaf.is_some(), "a large page where nothing is mapped");
        let moved = from_leaf.move_entries(part, to_leaf.as_mut(), to);
        let shift = if is_made(Mistake::MoveFlushedWhereItWent) { to - part.start() } else { 0 };
        let addresses = (moved.first + shift, moved.last + shift);
        self.changes.emptied(&from_leaf, addresses, (moved.present, moved.absent));
        Ok(())
    }

    /// Takes a large page out of its place; `None` if there is none.
    fn take_large(&mut self, tables: &PageTable<E>, part: PageRange) -> Option<TakenOut> {
        let taken = tables.large(part.start())?.take_out();
        self.changes.changed_large(part.start(), taken.old, Entry::EMPTY);
        Some(taken)
    }

    /// Moves a large page as it is.
    fn move_large(&mut self, tables: &PageTable<E>, part: PageRange, to: u64) -> Result<(), OutOfMemory> {
        let Some(TakenOut { old, aside: Some(aside) }) = self.take_large(tables, part) else { return Ok(()) };
        let room = tables.room_for_large(to)?;
        debug_assert!(room.is_some(), "a large page was moved onto another");
        if let Some(mut room) = room {
            room.put(old, aside);
        }
        Ok(())
    }

    /// Moves a large page to where others share the tables, or its pages are not aligned alike.
    fn move_pieces(&mut self, tables: &PageTable<E>, part: PageRange, to: u64) -> Result<(), OutOfMemory> {
        let Some(TakenOut { old, aside }) = self.take_large(tables, part) else { return Ok(()) };
        if let Some(aside) = aside {
            let environment = &self.space.environment;
            environment.frames().release(environment.current_cpu(), aside);
        }
        let mut next = part.start();
        while next < part.end() {
            let target = to + (next - part.start());
            let Some(mut leaf) = tables.leaf_or_create(target)? else { return Ok(()) };
            let end = part.end().min(next + LEAF_SPAN - target % LEAF_SPAN);
            while next < end {
                leaf.replace(to + (next - part.start()), old.piece(next));
                next += PAGE_SIZE;
            }
        }
        self.space.environment.frames().large_pages().note_split();
        Ok(())
    }

    /// Flushes, and only then lets others at the pages again.
    fn finish(mut self, is_anonymous: bool) {
        if is_made(Mistake::MoveFlushedAfterUnlock) || (is_made(Mistake::MoveFlushedAtEnd) && is_anonymous) {
            self.alone = None;
        }
        self.changes.finish();
        drop(self.alone);
    }
}

/// Cuts a move into steps, as long as `visit` has no error. It gets each with the part of the source and the address to which
/// that goes.
fn try_for_each_step<E: Environment, X>(
    tables: &PageTable<E>,
    source: PageRange,
    target: u64,
    mut visit: impl FnMut(Step, PageRange, u64) -> Result<(), X>,
) -> Result<(), X> {
    let (mut rest, mut to) = (Some(source), target);
    while let Some(from) = rest {
        let step = next_step(tables, from, to);
        let length = step.length().min(from.length());
        let end = from.start() + length;
        if let Some(part) = PageRange::between(from.start(), end) {
            visit(step, part, to)?;
        }
        (rest, to) = (PageRange::between(end, from.end()), to + length);
    }
    Ok(())
}

/// The first step of moving `source` to `to`: the largest table that moves as a whole, or as many entries as one leaf table
/// on each side holds.
fn next_step<E: Environment>(tables: &PageTable<E>, source: PageRange, to: u64) -> Step {
    let from = source.start();
    for level in (1..=HIGHEST_MOVED).rev() {
        let reach = span(level);
        if !from.is_multiple_of(reach) || !to.is_multiple_of(reach) || source.length() < reach {
            continue;
        }
        let table = tables.upper_entry(from, level);
        if table.is_large() {
            return if tables.upper_entry(to, level).is_empty() { Step::Large } else { Step::Pieces };
        }
        if table.is_empty() || !tables.is_used(table) {
            return Step::Skip(reach);
        }
        // A table that is there already may be used by others: it is not in our way, but its pointer is.
        if tables.upper_entry(to, level).is_empty() {
            return Step::Table(level, table);
        }
    }
    if let Some(end) = tables.end_of_hole(from) {
        return Step::Skip(end - from);
    }
    let is_whole = from.is_multiple_of(LARGE_PAGE_SIZE) && source.length() >= LARGE_PAGE_SIZE;
    if is_whole && tables.peek(from).is_large() {
        return Step::Pieces;
    }
    let until_next = |address: u64| LEAF_SPAN - address % LEAF_SPAN;
    Step::Entries(until_next(from).min(until_next(to)))
}

impl Step {
    /// How many bytes it moves, of those that are left.
    fn length(&self) -> u64 {
        match self {
            Step::Skip(length) | Step::Entries(length) => *length,
            Step::Table(level, _) => span(*level),
            Step::Large | Step::Pieces => LARGE_PAGE_SIZE,
        }
    }
}
