//! Makes programs at random.
//!
//! A call alone says little; so most steps go where earlier ones went: few pages, on both sides of a table's boundary, ranges that overlap
//! what is mapped or end just beside it. One argument in some twenty is senseless in one of the ways that programs get wrong.
//! The model runs along, so that what is made stays within what it knows (`judge::is_tame`).

use crate::dice::Dice;
use crate::judge::{is_tame, settle};
use crate::model::Model;
use crate::names::{ADVICE, MAP_FLAGS, number};
use crate::program::{ACTORS, Address, BOUNDARY, Call, PAGE, Program, SLOTS, Step, TABLE, USER_END};
use crate::trace::Answer;

/// What programs are to be like.
#[derive(Clone, Copy, Debug)]
pub struct Taste {
    /// Steps that are made at the same time, and threads to make them.
    pub races: bool,
    /// Mappings of a whole page table.
    pub tables: bool,
    /// Rounds, at most.
    pub rounds: u64,
}

struct Maker {
    dice: Dice,
    taste: Taste,
    world: Model,
    program: Program,
    next_value: u64,
    next_child: u8,
    /// Children that can be waited for: who ended, and the actor that forked it.
    ended: Vec<(u8, u8)>,
    parents: Vec<(u8, u8)>,
    filled: Vec<u8>,
}

/// The program of a seed.
pub fn generate(name: String, seed: u64, taste: Taste) -> Program {
    let mut dice = Dice::new(seed);
    let threads = if taste.races { 2 + dice.below(2) as u8 } else { 1 + dice.below(5) as u8 / 4 };
    let program = Program { name, threads, spins: dice.once_in(2), rounds: Vec::new() };
    let rounds = 4 + dice.below(taste.rounds - 3);
    let mut maker = Maker {
        dice,
        taste,
        world: Model::new(&program),
        program,
        next_value: 1,
        next_child: threads,
        ended: Vec::new(),
        parents: Vec::new(),
        filled: Vec::new(),
    };
    maker.start();
    for _ in 0..4 * rounds {
        if (maker.program.rounds.len() as u64) < rounds {
            maker.round();
        }
    }
    maker.program
}

impl Maker {
    /// Nearly every program begins with memory and something in it.
    fn start(&mut self) {
        if self.dice.once_in(16) {
            return;
        }
        let pages = if self.taste.tables && self.dice.once_in(2) { TABLE } else { 2 + self.dice.below(8) };
        let page = if pages == TABLE { BOUNDARY } else { 4 + self.dice.below(12) };
        let kind = self.dice.one_of(&["private", "private", "private", "shared"]);
        let map = Call::Map {
            at: Address::Window(page, 0),
            length: pages * PAGE,
            rights: 3,
            flags: number(MAP_FLAGS, kind) | number(MAP_FLAGS, "fixed"),
            offset: 0,
            slot: 0,
        };
        self.add(vec![Step { actor: 0, call: map }]);
        for _ in 0..self.dice.below(4) {
            let at = Address::Window(page + self.dice.below(pages), 0);
            let value = self.value();
            self.add(vec![Step { actor: 0, call: Call::Store { at, value } }]);
        }
    }

    fn round(&mut self) {
        let mut living: Vec<u8> = self.world.living().collect();
        let wanted =
            if self.taste.races && self.dice.once_in(2) { 2 + self.dice.below(3) as usize } else { 1 };
        let mut round = Vec::new();
        while round.len() < wanted && !living.is_empty() {
            let actor = living.swap_remove(self.dice.below(living.len() as u64) as usize);
            let call = self.call(actor, wanted > 1);
            round.push(Step { actor, call });
        }
        self.add(round);
    }

    /// Adds a round, if the program stays tame with it.
    fn add(&mut self, round: Vec<Step>) {
        let mut longer = self.program.clone();
        longer.rounds.push(round);
        if !longer.is_sound()
            || (longer.rounds.last().is_some_and(|round| round.len() > 1) && !is_tame(&longer))
        {
            return;
        }
        let mut world = self.world.clone();
        world.step = self.program.steps().count() as u64;
        for step in longer.rounds.last().into_iter().flatten() {
            let Some(answer) = settle(&mut world, step) else { return };
            world.step += 1;
            self.note(step, &answer);
        }
        (self.world, self.program) = (world, longer);
    }

    fn note(&mut self, step: &Step, answer: &Answer) {
        match step.call {
            Call::Fork { child } => {
                self.parents.push((child, step.actor));
                self.next_child = self.next_child.max(child + 1);
            }
            Call::Exit { .. } => {
                let parent = self.parents.iter().find(|(child, _)| *child == step.actor).copied();
                self.ended.extend(parent);
            }
            Call::Wait { child } => self.ended.retain(|(ended, _)| *ended != child),
            Call::Map { slot, .. } | Call::Remap { slot, .. } if *answer == Answer::Chosen => {
                self.filled.retain(|filled| *filled != slot);
                self.filled.push(slot);
            }
            _ => {}
        }
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value - 1
    }

    fn call(&mut self, actor: u8, is_race: bool) -> Call {
        if let Some((child, _)) = self.ended.iter().find(|(_, parent)| *parent == actor).copied() {
            return Call::Wait { child };
        }
        match self.dice.below(if is_race { 76 } else { 88 }) {
            0..14 => Call::Load { at: self.page(actor) },
            14..30 => Call::Store { at: self.page(actor), value: self.value() },
            30..40 => self.map(actor),
            40..48 => {
                let (at, length) = self.range(actor);
                Call::Unmap { at, length }
            }
            48..58 => self.protect(actor),
            58..67 => self.advise(actor, is_race),
            67..71 => self.fork_or_exit(actor),
            71..75 => Call::Hop { cpu: self.dice.below(4) as u8 },
            75..84 => self.remap(actor),
            _ => {
                let (at, length) = self.range(actor);
                // A longer answer would be told in part.
                Call::Incore { at, length: if length < 1 << 40 { length.min(64 * PAGE) } else { length } }
            }
        }
    }

    /// A page: near a boundary, or of a block.
    fn page(&mut self, actor: u8) -> Address {
        if self.dice.once_in(6)
            && let Some(block) = self.block(actor)
        {
            return block.0;
        }
        Address::Window(self.number(), 0)
    }

    fn number(&mut self) -> u64 {
        let table = if self.taste.tables && self.dice.once_in(3) { self.dice.below(4) } else { 0 };
        // Two dice: the middle, where the boundary is, comes up most often.
        table * TABLE + self.dice.below(BOUNDARY) + self.dice.below(BOUNDARY)
    }

    /// A block with something in it: a page, and how many pages it has from there.
    fn block(&mut self, actor: u8) -> Option<(Address, u64)> {
        let slot = (!self.filled.is_empty()).then(|| self.dice.one_of(&self.filled.clone()))?;
        let pages = self.world.block(self.world.process_of(actor)?, slot);
        let page = (pages > 0).then(|| self.dice.below(pages))?;
        Some((Address::Block(slot, page, 0), pages - page))
    }

    /// A range, senseless once in a while.
    fn range(&mut self, actor: u8) -> (Address, u64) {
        if self.dice.once_in(8)
            && let Some((at, pages)) = self.block(actor)
        {
            return (at, (1 + self.dice.below(pages)) * PAGE);
        }
        let page = self.number();
        let pages = match self.dice.below(8) {
            0..4 => 1 + self.dice.below(3),
            4..7 => 1 + self.dice.below(12),
            _ if self.taste.tables => TABLE - 1 + self.dice.below(3),
            _ => 1,
        };
        let page =
            if pages >= TABLE - 1 && self.dice.once_in(2) { page / TABLE * TABLE + BOUNDARY } else { page };
        let sensible = (Address::Window(page, 0), pages * PAGE);
        if self.dice.once_in(14) { self.senseless(sensible) } else { sensible }
    }

    /// Nothing between 2^47 and 2^56: there Linux has user space on a CPU with five levels of tables, as the emulator's is.
    fn senseless(&mut self, (at, length): (Address, u64)) -> (Address, u64) {
        let page = self.number();
        match self.dice.below(11) {
            0 => (Address::Window(page, 1), length),
            1 => (Address::Window(page, PAGE - 1), length),
            2 => (at, 0),
            3 => (at, length - PAGE + 1),
            4 => (at, length - 1),
            5 => (at, u64::MAX - self.dice.below(3) * (PAGE - 1)),
            6 => (at, 1 << 63),
            7 => (at, (1 << 63) - PAGE),
            8 => (
                Address::Plain(self.dice.one_of(&[0, PAGE, 0x1_0000, 1 << 63, 0xffff_8000_0000_0000])),
                length,
            ),
            9 => (Address::Plain(!(PAGE - 1)), length),
            _ => (at, 1 << 40),
        }
    }

    fn rights(&mut self) -> u64 {
        let usual = self.dice.one_of(&[3, 3, 3, 1, 1, 0, 2, 7, 5]);
        if self.dice.once_in(40) { usual | self.dice.one_of(&[4, 8, 16, 1 << 31]) } else { usual }
    }

    fn map(&mut self, actor: u8) -> Call {
        let (mut at, mut length) = self.range(actor);
        let mut flags = number(MAP_FLAGS, self.dice.one_of(&["private", "private", "private", "shared"]));
        flags |= match self.dice.below(10) {
            0..6 => number(MAP_FLAGS, "fixed"),
            6..8 => number(MAP_FLAGS, "noreplace"),
            _ => {
                if self.dice.once_in(2) {
                    at = Address::Plain(0);
                }
                0
            }
        };
        if self.dice.once_in(4) {
            let extra = self.dice.one_of(&[
                "growsdown",
                "growsdown",
                "locked",
                "locked",
                "noreserve",
                "populate",
                "populate",
                "nonblock",
                "stack",
                "32bit",
                "denywrite",
                "executable",
            ]);
            flags |= number(MAP_FLAGS, extra);
        }
        if self.dice.once_in(40) {
            flags = self.dice.one_of(&[0, 3, 0x10, 0x13, 0x11_0002, 8]);
        }
        let offset = if self.dice.once_in(25) { self.dice.one_of(&[1, PAGE, !(PAGE - 1)]) } else { 0 };
        if (1 << 30..=USER_END).contains(&length) || (length > 64 * PAGE && flags & 0xa000 != 0) {
            // Not what happens when much memory is asked for: a guest has little.
            length = 4 * PAGE;
        }
        Call::Map {
            at,
            length,
            rights: self.rights(),
            flags,
            offset,
            slot: self.dice.below(u64::from(SLOTS)) as u8,
        }
    }

    fn protect(&mut self, actor: u8) -> Call {
        let (at, mut length) = self.range(actor);
        let mut rights = self.rights();
        if self.dice.once_in(20) {
            // Downwards from an area that is found above: what lies far behind the window is the program's own.
            length = length.min(64 * PAGE);
            rights |= self.dice.one_of(&[0x0100_0000, 0x0200_0000, 0x0300_0000]);
        }
        Call::Protect { at, length, rights }
    }

    fn advise(&mut self, actor: u8, is_race: bool) -> Call {
        let (at, mut length) = self.range(actor);
        if (1 << 40..=1 << 63).contains(&length) {
            // Advice goes on behind holes: what lies far behind the window is the program's own.
            length = 1 << 40;
        }
        let common = ["dontneed", "dontneed", "free", "dontfork", "wipeonfork", "populate-write"];
        let (_, any) = self.dice.one_of(ADVICE);
        let mut advice = if self.dice.once_in(2) { number(ADVICE, self.dice.one_of(&common)) } else { any };
        if self.dice.once_in(40) {
            advice = self.dice.one_of(&[5, 7, 26, 99, 1 << 31]);
        }
        // Populating is not one step, and does not claim to be.
        let populates =
            advice == number(ADVICE, "populate-read") || advice == number(ADVICE, "populate-write");
        if populates && (is_race || length > 64 * PAGE) {
            advice = number(ADVICE, "dontneed");
        }
        Call::Advise { at, length, advice }
    }

    fn fork_or_exit(&mut self, actor: u8) -> Call {
        if actor != 0 && self.dice.once_in(2) {
            return Call::Exit { status: self.dice.below(200) as u8 };
        }
        if self.next_child < ACTORS {
            Call::Fork { child: self.next_child }
        } else {
            Call::Load { at: self.page(actor) }
        }
    }

    fn remap(&mut self, actor: u8) -> Call {
        let (at, old) = self.range(actor);
        let (to, other) = self.range(actor);
        let new = match self.dice.below(4) {
            0 | 1 => old,
            2 => other,
            _ => old.saturating_add(self.dice.below(3) * PAGE),
        };
        let mut flags = self.dice.one_of(&[0, 1, 1, 1, 3, 3, 3, 5, 7]);
        if self.dice.once_in(30) {
            flags = self.dice.one_of(&[2, 4, 6, 8, 9]);
        }
        let old = if self.dice.once_in(12) { 0 } else { old };
        let new = if (1 << 30..=USER_END).contains(&new) { PAGE } else { new };
        let to = if self.dice.once_in(6) { Address::Plain(0) } else { to };
        Call::Remap { at, old, new, flags, to, slot: self.dice.below(u64::from(SLOTS)) as u8 }
    }
}
