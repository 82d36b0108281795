//! Every schedule up to a price.
//!
//! Depth first. A run repeats the choices on the path, and from its end on makes the free choice at every decision, noting the
//! others; then the last choice that has an alternative is changed. A state in which all that can be afforded now was explored
//! before is not branched from again: the run goes on to its end without taking notes.

use rustc_hash::FxHashMap;

use crate::choice::Priced;
use crate::{Digest, Strategy};

/// Explores every schedule whose deviations cost no more than a bound.
#[derive(Debug)]
pub struct Exhaustive {
    bound: u8,
    path: Vec<Decision>,
    /// How many decisions of the path this run has taken.
    depth: usize,
    spent: u8,
    /// The run is in a state that needs no further look.
    known: bool,
    /// For each state, the most that was left to spend when it was explored.
    explored: FxHashMap<u64, u8>,
    begun: bool,
}

/// A decision on the path, with the prices of the offers.
#[derive(Debug)]
struct Decision {
    prices: Vec<u8>,
    chosen: usize,
    spent: u8,
}

impl Decision {
    /// Moves on to the next offer that can be paid; says whether there is one.
    fn advance(&mut self, bound: u8) -> bool {
        let left = bound - self.spent;
        let next = (self.chosen + 1..self.prices.len()).find(|offer| self.prices[*offer] <= left);
        self.chosen = next.unwrap_or(self.chosen);
        next.is_some()
    }
}

impl Exhaustive {
    /// Explores up to that price.
    pub fn new(bound: u8) -> Self {
        Exhaustive {
            bound,
            path: Vec::new(),
            depth: 0,
            spent: 0,
            known: false,
            explored: FxHashMap::default(),
            begun: false,
        }
    }

    /// How many states were told apart.
    pub fn states(&self) -> usize {
        self.explored.len()
    }
}

impl Strategy for Exhaustive {
    fn begin(&mut self) -> bool {
        (self.depth, self.spent, self.known) = (0, 0, false);
        if !std::mem::replace(&mut self.begun, true) {
            return true;
        }
        let bound = self.bound;
        while let Some(last) = self.path.last_mut() {
            if last.advance(bound) {
                return true;
            }
            self.path.pop();
        }
        false
    }

    fn choose(&mut self, offers: &[Priced], state: &dyn Fn() -> Digest) -> usize {
        let left = self.bound - self.spent;
        if self.known || offers.iter().filter(|offer| offer.price <= left).count() < 2 {
            return 0;
        }
        if self.depth == self.path.len() {
            let best = self.explored.entry(state().number()).or_insert(0);
            // 0 left is never noted, since nothing can be bought with it.
            if *best > left {
                self.known = true;
                return 0;
            }
            *best = left + 1;
            let prices = offers.iter().map(|offer| offer.price).collect();
            self.path.push(Decision { prices, chosen: 0, spent: self.spent });
        }
        let decision = &self.path[self.depth];
        self.depth += 1;
        self.spent += decision.prices[decision.chosen];
        decision.chosen
    }
}
