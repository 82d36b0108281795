//! Schedules by random priorities (PCT): the CPU with the highest priority that can run does, and at a few random moments the
//! one that runs becomes the lowest. A bug that needs d such moments is found with a probability that depends on d and on the length
//! of the run, and not on how many schedules there are.

use crate::choice::{Choice, Priced};
use crate::random::Dice;
use crate::{Digest, Strategy};

const CPUS: usize = 64;

/// Explores by random priorities.
#[derive(Debug)]
pub struct Priorities {
    seed: u64,
    runs: u64,
    left: u64,
    /// How many times a priority changes in a run.
    changes: usize,
    /// How many decisions a run has, about.
    length: usize,
    decision: usize,
    order: Vec<usize>,
    moments: Vec<usize>,
    dice: Dice,
}

impl Priorities {
    /// So many runs with so many changes each. Run n of seed s is run 0 of seed s + n, if runs before it were as long.
    pub fn new(seed: u64, runs: u64, changes: usize) -> Self {
        Priorities {
            seed,
            runs,
            left: runs,
            changes,
            length: 64,
            decision: 0,
            order: Vec::new(),
            moments: Vec::new(),
            dice: Dice::new(0),
        }
    }

    /// The seed of the present run.
    pub fn seed(&self) -> u64 {
        self.seed.wrapping_add(self.runs - self.left - 1)
    }

    fn rank(&self, cpu: usize) -> usize {
        self.order.iter().position(|other| *other == cpu).unwrap_or(cpu)
    }
}

impl Strategy for Priorities {
    fn begin(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.length = self.length.max(self.decision);
        self.decision = 0;
        self.dice = Dice::new(Digest::EMPTY.with(self.seed()).with(1).number());
        self.order = (0..CPUS).collect();
        for place in 0..CPUS {
            let other = place + self.dice.below(CPUS - place);
            self.order.swap(place, other);
        }
        self.moments = (0..self.changes).map(|_| self.dice.below(self.length)).collect();
        true
    }

    fn choose(&mut self, offers: &[Priced], _state: &dyn Fn() -> Digest) -> usize {
        self.decision += 1;
        let at_moment = self.moments.contains(&self.decision);
        if at_moment && self.dice.below(2) == 0 {
            // A moment may as well be one of the hardware's, of a store, or of an interrupt.
            return self.dice.below(offers.len());
        }
        let best = (0..offers.len())
            .filter(|offer| matches!(offers[*offer].choice, Choice::Run(_) | Choice::Interrupt(_)))
            .min_by_key(|offer| offers[*offer].choice.cpu().map_or(CPUS, |cpu| self.rank(cpu)));
        let best = best.unwrap_or(0);
        if at_moment && let Some(cpu) = offers[best].choice.cpu() {
            self.order.retain(|other| *other != cpu);
            self.order.push(cpu);
        }
        best
    }
}
