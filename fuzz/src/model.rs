//! A simple model of what Linux promises of these calls: a map from page to what the page is, and nothing else.
//!
//! It has no page tables, no areas in trees, no frames and no caches; it does one call at a time. So it shares no line, and hardly an idea,
//! with the code that it judges. Where Linux leaves open what happens (where it puts a mapping, when it drops pages after `MADV_FREE`,
//! whether areas that look alike were joined), the model asks the answer that was observed and follows it: what it may not be is refused.

mod advise;
mod map;
mod page;
mod remap;
mod space;
mod touch;

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{MAP_FLAGS, number};
use crate::program::{ACTORS, Address, Call, PAGE, Program, SLOTS, USER_END, WINDOW, WINDOW_PAGES};
use crate::trace::Answer;

pub(crate) use page::{Page, Source, marks};
pub(crate) use space::Space;

/// The rights' bits.
pub(crate) const READ: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const ALL: u64 = 7;

pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EFAULT: i32 = 14;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EOVERFLOW: i32 = 75;

/// Addresses that stand for blocks whose places the kernels choose: one stretch for each slot and each time that it is filled.
const BLOCKS: u64 = 0x6000_0000_0000;
const BLOCK_STRIDE: u64 = 1 << 32;
/// Where a block is that was never made.
pub const NOWHERE: u64 = 0x20_0000_0000;
/// More than a guest has: Linux refuses one such mapping that it must account for.
const TOO_MUCH: u64 = 1 << 36;

/// Shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) pages: u64,
    /// What its pages hold; one that is not here is not in memory.
    values: BTreeMap<u64, u64>,
    /// Those of them that may have left it all the same: nobody has stored to them, and they were to be paged out.
    doubtful: BTreeSet<u64>,
}

impl Object {
    /// What a page holds, which is in memory from now on.
    pub(crate) fn bring_in(&mut self, index: u64) -> u64 {
        self.doubtful.remove(&index);
        *self.values.entry(index).or_insert(0)
    }

    pub(crate) fn store(&mut self, index: u64, value: u64) {
        self.doubtful.remove(&index);
        self.values.insert(index, value);
    }

    pub(crate) fn drop_content(&mut self, index: u64) {
        self.doubtful.remove(&index);
        self.values.remove(&index);
    }

    /// A page may go, if it can be had again without a place to keep it.
    pub(crate) fn age(&mut self, index: u64) {
        if self.values.get(&index) == Some(&0) {
            self.doubtful.insert(index);
        }
    }

    /// Whether a page is in memory, as far as is known.
    fn presence(&self, index: u64) -> Option<bool> {
        let is_present = index < self.pages && self.values.contains_key(&index);
        (!self.doubtful.contains(&index)).then_some(is_present)
    }
}

/// The state of a program's world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    /// By process; a process has the number of its first actor.
    pub(crate) spaces: BTreeMap<u8, Space>,
    /// By the step that made them.
    pub(crate) objects: BTreeMap<u64, Object>,
    /// Which process an actor belongs to.
    actors: Vec<Option<u8>>,
    statuses: BTreeMap<u8, u8>,
    /// The page number of each slot's block.
    slots: Vec<Option<u64>>,
    /// The step that is made: what it makes is named by it, so that orders that come to the same are the same.
    pub(crate) step: u64,
    /// Each time when the answer was taken from several that could be: why.
    pub(crate) loosened: BTreeSet<&'static str>,
}

/// Why the model does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The answer cannot be: these could.
    Expected(Vec<Answer>),
    /// The call reaches beyond a block that the kernel placed, where nobody knows what lies.
    Wild,
}

/// What a call came to: an answer, or one of several that may be chosen from.
pub(crate) type Result<T> = std::result::Result<T, Refusal>;

impl Model {
    /// The world before the first round.
    pub(crate) fn new(program: &Program) -> Self {
        Model {
            spaces: BTreeMap::from([(0, Space::default())]),
            objects: BTreeMap::new(),
            actors: (0..ACTORS).map(|actor| (actor < program.threads).then_some(0)).collect(),
            statuses: BTreeMap::new(),
            slots: vec![None; usize::from(SLOTS)],
            step: 0,
            loosened: BTreeSet::new(),
        }
    }

    /// Makes a call. With an answer that was observed, follows it where it may be; else takes the likeliest.
    ///
    /// # Errors
    /// The answers that could be, or that the call is wild.
    pub(crate) fn make(&mut self, actor: u8, call: &Call, observed: Option<&Answer>) -> Result<Answer> {
        let Some(process) = self.actors.get(usize::from(actor)).copied().flatten() else {
            return Err(Refusal::Wild);
        };
        let answer = match *call {
            Call::Map { at, length, rights, flags, offset, slot } => {
                let request = map::Request {
                    at: self.resolve(at),
                    is_block: is_block(at),
                    length,
                    rights,
                    flags,
                    offset,
                };
                self.guard(process, at, length, flags & number(MAP_FLAGS, "fixed") != 0)?;
                self.map(process, request, slot, observed)?
            }
            Call::Unmap { at, length } => {
                self.guard(process, at, length, true)?;
                self.unmap(process, self.resolve(at), length)
            }
            Call::Protect { at, length, rights } => {
                self.guard(process, at, length, true)?;
                self.protect(process, self.resolve(at), length, rights)
            }
            Call::Remap { at, old, new, flags, to, slot } => {
                self.guard(process, at, old.max(1), true)?;
                if is_block(at) && new > old && flags & 2 == 0 {
                    // Whether it can grow where it is depends on its neighbours.
                    return Err(Refusal::Wild);
                }
                self.guard(process, to, new, flags & 2 != 0)?;
                let request = remap::Request {
                    at: self.resolve(at),
                    old,
                    new,
                    flags,
                    to: self.resolve(to),
                    slot,
                    at_block: is_block(at),
                };
                self.remap(process, request, observed)?
            }
            Call::Advise { at, length, advice } => {
                self.guard(process, at, length, true)?;
                self.advise(process, self.resolve(at), length, advice, observed)
            }
            Call::Incore { at, length } => {
                self.guard(process, at, length, true)?;
                self.incore(process, self.resolve(at), length, observed)
            }
            Call::Load { at } => {
                self.guard(process, at, 1, true)?;
                self.load(process, self.resolve(at), observed)
            }
            Call::Store { at, value } => {
                self.guard(process, at, 1, true)?;
                self.store(process, self.resolve(at), value)
            }
            Call::Fork { child } => {
                let copy = self.forked(process);
                self.spaces.insert(child, copy);
                self.actors[usize::from(child)] = Some(child);
                Answer::Done
            }
            Call::Exit { status } => {
                self.actors[usize::from(actor)] = None;
                self.statuses.insert(actor, status);
                if !self.actors.contains(&Some(process)) {
                    self.spaces.remove(&process);
                }
                Answer::Done
            }
            Call::Wait { child } => {
                let status = self.statuses.get(&child).copied().ok_or(Refusal::Wild)?;
                Answer::Number(u64::from(status))
            }
            Call::Hop { .. } => Answer::Done,
        };
        match observed {
            Some(observed) if *observed != answer => Err(Refusal::Expected(vec![answer])),
            _ => Ok(answer),
        }
    }

    /// The processes that are left, each with its first actor.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u8, u8)> {
        self.spaces.keys().filter_map(|process| {
            let first = self.actors.iter().position(|owner| *owner == Some(*process))?;
            Some((*process, first as u8))
        })
    }

    /// The actors that are left.
    pub(crate) fn living(&self) -> impl Iterator<Item = u8> {
        (0..ACTORS).filter(|actor| self.actors[usize::from(*actor)].is_some())
    }

    /// Which process an actor belongs to.
    pub(crate) fn process_of(&self, actor: u8) -> Option<u8> {
        self.actors.get(usize::from(actor)).copied().flatten()
    }

    pub(crate) fn loosen(&mut self, why: &'static str) {
        self.loosened.insert(why);
    }

    fn resolve(&self, address: Address) -> u64 {
        match address {
            Address::Window(page, bytes) => WINDOW + page * PAGE + bytes,
            Address::Plain(number) => number,
            Address::Block(slot, page, bytes) => {
                let start = self.slots[usize::from(slot)].map_or(NOWHERE, |first| first * PAGE);
                start + page * PAGE + bytes
            }
        }
    }

    /// Remembers a mapping that the kernel placed: its page number here.
    pub(crate) fn place(&mut self, slot: u8) -> u64 {
        let start = (BLOCKS + self.step * BLOCK_STRIDE) / PAGE;
        self.slots[usize::from(slot)] = Some(start);
        start
    }

    /// The mapped part of a slot's block, as the model has it: how many pages from its start on.
    pub(crate) fn block(&self, process: u8, slot: u8) -> u64 {
        let (Some(start), Some(space)) = (self.slots[usize::from(slot)], self.spaces.get(&process)) else {
            return 0;
        };
        (start..).take_while(|page| space.pages.contains_key(page)).count() as u64
    }

    /// Refuses calls that leave a block.
    fn guard(&self, process: u8, at: Address, length: u64, counts: bool) -> Result<()> {
        let Address::Block(slot, page, _) = at else { return Ok(()) };
        let Some(start) = self.slots[usize::from(slot)].filter(|_| counts) else { return Ok(()) };
        let space = self.spaces.get(&process).ok_or(Refusal::Wild)?;
        let last = page.saturating_add(length.saturating_sub(1) / PAGE);
        let is_inside = last < 4096 && (page..=last).all(|page| space.pages.contains_key(&(start + page)));
        if is_inside { Ok(()) } else { Err(Refusal::Wild) }
    }

    pub(crate) fn space(&mut self, process: u8) -> &mut Space {
        self.spaces.entry(process).or_default()
    }

    /// A name for a change that makes pieces of areas: what was treated together stays together.
    pub(crate) fn piece(&self, before: u64) -> u64 {
        (before ^ (self.step + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) | 1
    }

    fn unmap(&mut self, process: u8, at: u64, length: u64) -> Answer {
        if !at.is_multiple_of(PAGE) || at > USER_END || length > USER_END - at || round_up(length) == 0 {
            return Answer::Error(EINVAL);
        }
        self.space(process).remove(at / PAGE, (at + round_up(length)) / PAGE);
        Answer::Done
    }

    fn protect(&mut self, process: u8, at: u64, length: u64, rights: u64) -> Answer {
        const DOWN: u64 = 0x0100_0000;
        const UP: u64 = 0x0200_0000;
        let (down, up, rights) = (rights & DOWN != 0, rights & UP != 0, rights & !(DOWN | UP));
        if (down && up) || !at.is_multiple_of(PAGE) {
            return Answer::Error(EINVAL);
        }
        if length == 0 {
            return Answer::Done;
        }
        let Some(end) = at.checked_add(round_up(length)).filter(|end| *end > at) else {
            return Answer::Error(ENOMEM);
        };
        if rights & !0xf != 0 {
            return Answer::Error(EINVAL);
        }
        let (mut next, end) = (at / PAGE, end / PAGE);
        let Some((&first, _)) = self.space(process).pages.range(next..).next() else {
            return Answer::Error(ENOMEM);
        };
        if down {
            if first >= end {
                return Answer::Error(ENOMEM);
            }
            let start = if first > next { first } else { next };
            if !self.space(process).pages[&start].has(marks::GROWS_DOWN) {
                return Answer::Error(EINVAL);
            }
            next = self.space(process).area_start(start);
        } else if first > next {
            return Answer::Error(ENOMEM);
        } else if up {
            return Answer::Error(EINVAL);
        }
        while next < end {
            let piece = self.space(process).pages.get(&next).map(|page| page.piece);
            let Some(piece) = piece else { return Answer::Error(ENOMEM) };
            let piece = self.piece(piece);
            if let Some(page) =
                self.space(process).pages.get_mut(&next).filter(|page| page.rights != rights & ALL)
            {
                (page.rights, page.piece) = (rights & ALL, piece);
                if page.has(marks::LOCKED) && rights & WRITE != 0 && matches!(page.source, Source::Private) {
                    page.present = Some(true);
                }
            }
            next += 1;
        }
        Answer::Done
    }

    fn incore(&mut self, process: u8, at: u64, length: u64, observed: Option<&Answer>) -> Answer {
        if !at.is_multiple_of(PAGE) {
            return Answer::Error(EINVAL);
        }
        if at.checked_add(length).is_none_or(|end| end > USER_END) {
            return Answer::Error(ENOMEM);
        }
        let first = at / PAGE;
        let mut pages = Vec::new();
        for page in first..first + length.div_ceil(PAGE) {
            let Some(found) = self.space(process).pages.get(&page).copied() else {
                return Answer::Error(ENOMEM);
            };
            let known = self.presence(&found);
            let seen = match observed {
                Some(Answer::Core(seen)) => seen.get(pages.len()).copied(),
                _ => None,
            };
            pages.push(known.or(seen).unwrap_or(false));
        }
        if pages.is_empty() { Answer::Core(Vec::new()) } else { Answer::Core(pages) }
    }

    /// Whether a page is in memory, if that is certain.
    pub(crate) fn presence(&self, page: &Page) -> Option<bool> {
        match page.source {
            Source::Private => page.present,
            Source::Shared { object, index } => self.objects[&object].presence(index),
        }
    }

    /// Nothing is known any more of which private pages are in memory.
    pub(crate) fn doubt_presence(&mut self) {
        for page in self.spaces.values_mut().flat_map(|space| space.pages.values_mut()) {
            if page.value == 0 {
                page.present = None;
            }
        }
    }

    fn forked(&self, process: u8) -> Space {
        let mut copy = self.spaces.get(&process).cloned().unwrap_or_default();
        copy.pages.retain(|_, page| !page.has(marks::DONT_FORK));
        for page in copy.pages.values_mut() {
            page.marks &= !marks::LOCKED;
            if page.has(marks::WIPE_ON_FORK) {
                (page.value, page.is_loose, page.present) = (0, false, Some(false));
            } else if page.present == Some(true) && !page.is_written {
                // The zero page is copied where something else in its area was written.
                page.present = None;
            }
        }
        copy
    }
}

/// Up to whole pages as Linux does: what is too large wraps to nothing.
pub(crate) fn round_up(length: u64) -> u64 {
    length.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

fn is_block(address: Address) -> bool {
    matches!(address, Address::Block(..))
}

/// The window's page of a page number.
pub(crate) fn in_window(page: u64) -> Option<u64> {
    page.checked_sub(WINDOW / PAGE).filter(|page| *page < WINDOW_PAGES)
}
