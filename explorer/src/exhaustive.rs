//! Every schedule up to a price.
//!
//! Depth first. A run repeats the choices on the path, and from its end on makes the free choice at every decision, noting the
//! others; then the last choice that has an alternative is changed. A state in which all that can be afforded now was explored
//! before is not branched from again: the run goes on to its end without taking notes.
//!
//! The schedules can be dealt out to several searches that know nothing of each other ([`Exhaustive::piece`]), by their first
//! deviation from the undisturbed run: each of those belongs to exactly one piece. A piece may recognise a state of the undisturbed
//! run of which it explored only its own deviations; the others explore the rest, with as much to spend, as they begin there.
//! So all pieces together have explored what one search explores, and some of it more than once.

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
    /// How many runs were begun.
    runs: u64,
    piece: Piece,
}

/// Which first deviations a search takes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    index: usize,
    of: usize,
    /// Offers of the undisturbed run that were numbered so far.
    numbered: usize,
}

/// A decision on the path, with the prices of the offers.
#[derive(Debug)]
struct Decision {
    prices: Vec<u8>,
    chosen: usize,
    spent: u8,
    /// On the undisturbed run: the number of its first offer among all offers there.
    first: Option<usize>,
}

impl Decision {
    /// Moves on to the next offer that can be paid and belongs to the piece; says whether there is one.
    fn advance(&mut self, bound: u8, piece: Piece) -> bool {
        let left = bound - self.spent;
        let is_ours =
            |offer: &usize| self.first.is_none_or(|first| (first + offer) % piece.of == piece.index);
        let next =
            (self.chosen + 1..self.prices.len()).filter(is_ours).find(|offer| self.prices[*offer] <= left);
        self.chosen = next.unwrap_or(self.chosen);
        next.is_some()
    }
}

impl Exhaustive {
    /// Explores up to that price.
    pub fn new(bound: u8) -> Self {
        Self::piece(bound, 0, 1)
    }

    /// Explores one of so many pieces, counted from 0, of all schedules up to that price.
    ///
    /// # Panics
    /// If there is no such piece.
    pub fn piece(bound: u8, index: usize, of: usize) -> Self {
        assert!(index < of, "there is no piece {index} of {of}");
        Exhaustive {
            bound,
            path: Vec::new(),
            depth: 0,
            spent: 0,
            known: false,
            explored: FxHashMap::default(),
            runs: 0,
            piece: Piece { index, of, numbered: 0 },
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
        self.runs += 1;
        if self.runs == 1 {
            return true;
        }
        let (bound, piece) = (self.bound, self.piece);
        while let Some(last) = self.path.last_mut() {
            if last.advance(bound, piece) {
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
            let is_undisturbed = self.runs == 1;
            let first = is_undisturbed.then_some(self.piece.numbered);
            self.piece.numbered += if is_undisturbed { offers.len() } else { 0 };
            self.path.push(Decision { prices, chosen: 0, spent: self.spent, first });
        }
        let decision = &self.path[self.depth];
        self.depth += 1;
        self.spent += decision.prices[decision.chosen];
        decision.chosen
    }
}
