//! Schedules at random, from a seed.

use crate::choice::Priced;
use crate::{Digest, Strategy};

/// A small generator of random numbers, the same ones for the same seed on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (Digest::EMPTY.with(self.0).with(0x5eed).number() % limit as u64) as usize
    }
}

/// At each decision the free choice most of the time, and else any.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    runs: u64,
    left: u64,
    /// One decision in that many deviates, in this run.
    rarity: usize,
    dice: Dice,
}

impl Random {
    /// So many runs. Run n of seed s is run 0 of seed s + n.
    pub fn new(seed: u64, runs: u64) -> Self {
        Random { seed, runs, left: runs, rarity: 1, dice: Dice::new(0) }
    }

    /// The seed of the present run.
    pub fn seed(&self) -> u64 {
        self.seed.wrapping_add(self.runs - self.left - 1)
    }
}

impl Strategy for Random {
    fn begin(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.dice = Dice::new(Digest::EMPTY.with(self.seed()).number());
        // Some runs are restless, some nearly undisturbed: bugs differ in what they need.
        self.rarity = 2 << self.dice.below(5);
        true
    }

    fn choose(&mut self, offers: &[Priced], _state: &dyn Fn() -> Digest) -> usize {
        // Forced decisions, where several are free, are open to all.
        let free = offers.iter().filter(|offer| offer.price == 0).count();
        if self.dice.below(self.rarity) > 0 { self.dice.below(free) } else { self.dice.below(offers.len()) }
    }
}
