//! Out of memory, into a slot: which private pages go, and in which order that is done.
//!
//! A hand goes round over all spaces, and in each over its private anonymous pages, as the entries map them: an entry that is marked as used loses
//! the mark, one that is not becomes that of a slot. So nothing is kept for pages that might go one day, and no fault, `mmap` or `fork` pays for
//! it. A page that several spaces share goes when the hand has passed all its entries: each is given the same slot (`swap`).
//!
//! The hand holds the area lock shared, so that pages stay where they are, and lets go of it before it flushes. Who comes between finds a swap
//! entry that is not flushed, and settles for it as for an empty one (`page_batch`).
//!
//! Entries are emptied, then comes one flush for all of them, and only after that are the pages written: until then stores may land in them through
//! what CPUs have cached. A page whose owners came back for it meanwhile is not written.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use coherence::Cause;

use crate::address_space::AddressSpace;
use crate::area::{Area, AreaFlags};
use crate::departures::Departure;
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::leaf::Leaf;
use crate::mistake::{Mistake, is_made};
use crate::page_batch::PageBatch;
use crate::page_table::{LEAF_SPAN, PageTable};
use crate::range::{PageRange, USER_END};
use crate::scan::Scanned;
use crate::swap::Slot;

/// Pages that go with one flush, at most.
pub(crate) const PAGES_TO_A_FLUSH: usize = 512;
/// Pages of one space that are looked at before it is another's turn.
const TURN: usize = 512;

/// Pages on their way out with one flush.
pub(crate) struct Outgoing<'a, E: Environment> {
    environment: &'a E,
    pub(crate) batch: PageBatch<'a, E>,
    departures: Vec<Departure>,
    /// Slots of pages that others had entered before.
    joined: Vec<Slot>,
    chosen: usize,
    wanted: usize,
    is_full: bool,
}

/// Which pages go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Those that have not been used since the last look.
    Unused,
    /// All that nobody else maps.
    Own,
    /// None yet: those that nobody else maps lose their marks of being used.
    Cold,
}

/// Has about as many private pages as are `wanted`, which have not been used for long, written to slots and taken out of memory. `spaces` are all of this machine. May
/// sleep.
pub fn swap_out<E: Environment>(environment: &E, spaces: &[Arc<AddressSpace<E>>], wanted: usize) -> Scanned {
    let swap = environment.swap();
    let mut scanned = Scanned { looked_at: 0, taken: swap.drop_idle() };
    // The first look at a page that was used takes the mark, and the second may take the page.
    let resident: u64 = spaces.iter().map(|space| space.resident_pages()).sum();
    let most = 2 * resident as usize + TURN;
    let (mut turn, mut in_vain) = (swap.turns.load(Relaxed), 0);
    while scanned.taken < wanted && scanned.looked_at < most && swap.has_room() {
        let missing = (wanted - scanned.taken).min(PAGES_TO_A_FLUSH);
        let mut outgoing = Outgoing::new(environment, missing);
        while !outgoing.is_done() && scanned.looked_at < most && in_vain <= 2 * spaces.len() {
            let Some(space) = spaces.get(turn % spaces.len().max(1)) else { break };
            turn += 1;
            let looked_at = space.pass(TURN, &mut outgoing);
            in_vain = if looked_at == 0 { in_vain + 1 } else { 0 };
            scanned.looked_at += looked_at;
        }
        let has_chosen = outgoing.chosen > 0;
        scanned.taken += outgoing.finish();
        if !has_chosen {
            break;
        }
    }
    swap.turns.store(turn, Relaxed);
    if scanned.taken == 0 {
        // The second look at pages that nobody has mapped since the first, above.
        scanned.taken = swap.drop_idle();
    }
    scanned
}

impl<'a, E: Environment> Outgoing<'a, E> {
    pub(crate) fn new(environment: &'a E, wanted: usize) -> Self {
        let batch = PageBatch::new(environment, Cause::Reclaim);
        Self {
            environment,
            batch,
            departures: Vec::new(),
            joined: Vec::new(),
            chosen: 0,
            wanted,
            is_full: false,
        }
    }

    fn is_done(&self) -> bool {
        self.is_full || self.chosen >= self.wanted
    }

    /// Looks at the pages of a part of a table; says at how many.
    pub(crate) fn look(
        &mut self,
        space: &Arc<AddressSpace<E>>,
        leaf: &mut Leaf<'_, E>,
        part: PageRange,
        choice: Choice,
    ) -> usize {
        self.batch.meet(space);
        let frames = self.environment.frames();
        let mut looked_at = 0;
        for (address, entry) in leaf.used_pages(part) {
            if self.is_done() {
                break;
            }
            if space.is_zero_frame(entry.frame()) {
                continue;
            }
            looked_at += 1;
            let goes = match choice {
                Choice::Unused => !self.batch.age(space, leaf, address),
                Choice::Own => frames.references(entry.frame()) == 1,
                Choice::Cold => {
                    if frames.references(entry.frame()) == 1 {
                        self.batch.age(space, leaf, address);
                    }
                    false
                }
            };
            if goes {
                self.take_out(space, leaf, address);
            }
        }
        looked_at
    }

    /// Puts the entry of a slot in the place of a page's.
    fn take_out(&mut self, space: &Arc<AddressSpace<E>>, leaf: &mut Leaf<'_, E>, address: u64) {
        let entry = leaf.entry(address);
        let Some((slot, time)) = self.environment.swap().enter(self.environment, entry.frame()) else {
            self.is_full = true;
            return;
        };
        // The guard goes along: what comes back is guarded.
        let swapped = Entry::swapped(slot, entry.has(Bits::GUARDED));
        let old = leaf.replace(address, swapped);
        self.batch.changed(space, address, old, swapped);
        space.note_gone(1);
        space.note_swapped(1);
        self.batch.release_later(old.frame());
        match time {
            Some(time) => self.departures.push(Departure { slot, time }),
            None => self.joined.push(slot),
        }
        self.chosen += 1;
    }

    /// Flushes, writes, and lets the pages go; says how many went.
    pub(crate) fn finish(mut self) -> usize {
        let swap = self.environment.swap();
        if is_made(Mistake::SwapWrittenBeforeFlush) {
            let slots: Vec<Slot> = self.departures.iter().map(|departure| departure.slot).collect();
            let gone = swap.write_out(self.environment, self.departures);
            self.batch.finish();
            return gone + swap.drop_unmapped(&slots);
        }
        self.batch.flush_written();
        // With it go the entries' references, so that what is written is the cache's alone.
        self.batch.finish();
        swap.write_out(self.environment, self.departures) + swap.drop_unmapped(&self.joined)
    }

    /// Whether there are likely to be more pages to choose than one flush takes.
    pub(crate) fn has_more(&self) -> bool {
        self.chosen >= self.wanted && !self.is_full
    }
}

impl<E: Environment> AddressSpace<E> {
    /// The hand goes on over pages that may be swapped, from where it was, and looks at about `most`; says at how many. At the end of the space
    /// it stops.
    fn pass(self: &Arc<Self>, most: usize, outgoing: &mut Outgoing<'_, E>) -> usize {
        let layout = self.shared();
        let (mut looked_at, start) = (0, self.swap_hand.load(Relaxed));
        let mut stopped = None;
        let rest = PageRange::between(start, USER_END);
        for area in rest.iter().flat_map(|rest| layout.areas.overlapping(*rest)) {
            let part = PageRange::between(area.start().max(start), area.end());
            if let Some(part) = part.filter(|_| area.may_be_swapped()) {
                let is_enough = &mut |more, outgoing: &Outgoing<'_, E>| {
                    looked_at += more;
                    looked_at >= most || outgoing.is_done()
                };
                stopped = self.sweep(&layout.tables, part, Choice::Unused, is_enough, outgoing);
            }
            if stopped.is_some() {
                break;
            }
        }
        self.swap_hand.store(stopped.unwrap_or(0), Relaxed);
        looked_at
    }

    /// Has private pages of some ranges go, or takes them for unused.
    pub(crate) fn retire_private(
        &self,
        ranges: &[PageRange],
        choice: Choice,
        outgoing: &mut Outgoing<'_, E>,
    ) {
        let layout = self.shared();
        let Some(space) = layout.areas.space() else { return };
        for range in ranges {
            for area in layout.areas.overlapping(*range) {
                if let Some(part) = area.range().intersection(range).filter(|_| area.may_be_swapped()) {
                    let is_done = &mut |_, outgoing: &Outgoing<'_, E>| outgoing.is_done();
                    space.sweep(&layout.tables, part, choice, is_done, outgoing);
                }
            }
        }
    }

    /// Goes over a part of an area, table by table, until `is_enough` says so, which hears at how many pages were looked in each; where it stopped then.
    fn sweep(
        self: &Arc<Self>,
        tables: &PageTable<E>,
        part: PageRange,
        choice: Choice,
        is_enough: &mut dyn FnMut(usize, &Outgoing<'_, E>) -> bool,
        outgoing: &mut Outgoing<'_, E>,
    ) -> Option<u64> {
        let mut address = part.start();
        while address < part.end() {
            let end = ((address / LEAF_SPAN + 1) * LEAF_SPAN).min(part.end());
            let mut looked_at = 0;
            if let Some(mut leaf) = tables.leaf(address) {
                looked_at = outgoing.look(self, &mut leaf, PageRange::of_area(address, end), choice);
            } else if self.falls_apart(tables, address, choice) {
                continue;
            }
            self.environment.yield_if_needed();
            address = tables.end_of_hole(address).map_or(end, |hole| hole.max(end));
            if is_enough(looked_at, outgoing) {
                return Some(address.min(part.end()));
            }
        }
        None
    }

    /// A large page goes in pieces: says whether there was one here that may go, and that is in pieces now.
    fn falls_apart(&self, tables: &PageTable<E>, address: u64, choice: Choice) -> bool {
        let Some(mut large) = tables.large(address) else { return false };
        let goes = match choice {
            Choice::Unused | Choice::Cold => {
                let aged = large.update(Entry::looked_at);
                aged.is_none() && choice == Choice::Unused
            }
            Choice::Own => self.is_exclusive(large.entry()),
        };
        if goes {
            let mut changes = self.changes_under_lock(Cause::Reclaim);
            changes.settle();
            self.split(&mut large, address, &mut changes);
        }
        goes
    }
}

impl<E: Environment> Area<E> {
    /// Whether what is in it are private pages that may leave memory.
    pub(crate) fn may_be_swapped(&self) -> bool {
        self.is_private_anonymous() && self.has_private_pages() && !self.has_flag(AreaFlags::LOCKED)
    }
}
