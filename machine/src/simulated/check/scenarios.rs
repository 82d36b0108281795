//! The scenarios with the real code: every schedule up to the bound, and some at random beyond.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use explorer::{Exhaustive, Outcome, Priorities, Random, Strategy, explore};
use protocol::check::ScenarioResult;

use super::super::scenario::Scenario;
use super::options::Check;
use super::subject::Subject;
use super::{tell, workers};

/// How many times a priority changes in a run by priorities.
const CHANGES: usize = 4;

/// A piece of a scenario's schedules.
struct Piece {
    scenario: &'static Scenario,
    /// Its place among the results.
    place: usize,
    index: u32,
}

/// What came of one scenario so far.
#[derive(Default)]
struct Entry {
    result: Option<ScenarioResult>,
    /// Pieces that this process still has to explore.
    left: usize,
}

/// Explores this process's share of these scenarios.
pub(super) fn explore_all(check: &Check, chosen: &[&'static Scenario]) -> Vec<ScenarioResult> {
    println!(
        "{:<40} {:>6} {:>10} {:>10} {:>8} {:>8}  result",
        "scenario", "price", "schedules", "states", "random", "seconds"
    );
    let pieces: Vec<_> = pieces(check, chosen);
    let entries: Vec<_> = chosen
        .iter()
        .enumerate()
        .map(|(place, _)| pieces.iter().filter(|piece| piece.place == place).count())
        .map(|left| Mutex::new(Entry { result: None, left }))
        .collect();
    let work = |piece: &Piece, after_each: &dyn Fn()| {
        let (result, lines) = explore_piece(check, piece, after_each);
        let entry = entries[piece.place].lock();
        entry.unwrap_or_else(PoisonError::into_inner).take_in(result, lines)
    };
    workers::share_out(&pieces, check.jobs, |piece| piece.scenario.name, work);
    let results = entries.into_iter().map(|entry| entry.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.filter_map(|entry| entry.result).collect()
}

fn pieces(check: &Check, chosen: &[&'static Scenario]) -> Vec<Piece> {
    let of_all = chosen.iter().enumerate().flat_map(|(place, scenario)| {
        (0..check.level.pieces()).map(move |index| Piece { scenario, place, index })
    });
    of_all.skip(check.shard.index).step_by(check.shard.count).collect()
}

impl Entry {
    /// Takes in what came of a piece, and says what there is to say now.
    fn take_in(&mut self, result: ScenarioResult, mut lines: String) -> String {
        self.left -= 1;
        match &mut self.result {
            None => self.result = Some(result),
            Some(whole) => {
                if !whole.passed {
                    // One schedule was told; the others are kept as replays.
                    lines.clear();
                }
                whole.join(result).expect("pieces of one scenario fit together");
            }
        }
        if let (0, Some(whole)) = (self.left, &self.result) {
            let word = if whole.passed { "ok" } else { "FAILED" };
            let _ = writeln!(
                lines,
                "{:<40} {:>6} {:>10} {:>10} {:>8} {:>8.2}  {word}",
                whole.name, whole.bound, whole.schedules, whole.states, whole.random_schedules, whole.seconds
            );
        }
        lines
    }
}

fn explore_piece(check: &Check, piece: &Piece, after_each: &dyn Fn()) -> (ScenarioResult, String) {
    let subject = Subject::of_scenario(piece.scenario);
    let (pieces, index) = (check.level.pieces(), piece.index);
    let started = Instant::now();
    let explored = |strategy: &mut dyn Strategy| -> (u64, Option<Outcome>) {
        explore(strategy, subject.cpus(), &|| subject.program(), |_| {
            after_each();
            true
        })
    };
    let bound = piece.scenario.bounds[check.level as usize];
    let mut exhaustive = Exhaustive::piece(bound, index as usize, pieces as usize);
    let (schedules, mut finding) = explored(&mut exhaustive);
    let states = exhaustive.states() as u64;
    // Run n of a seed is run 0 of that seed plus n: so the pieces of the random schedules follow each other.
    let runs = check.level.random_schedules() / u64::from(pieces);
    let from = check.seed.wrapping_add(runs * u64::from(index));
    let mut random_schedules = 0;
    let mut seed = None;
    if finding.is_none() {
        let mut random = Random::new(from, runs);
        let (runs, found) = explored(&mut random);
        seed = found.as_ref().map(|_| random.seed());
        (finding, random_schedules) = (found, runs);
    }
    if finding.is_none() {
        let mut priorities = Priorities::new(from, runs, CHANGES);
        let (runs, found) = explored(&mut priorities);
        seed = found.as_ref().map(|_| priorities.seed());
        finding = found;
        random_schedules += runs;
    }
    let mut lines = String::new();
    let told = finding.map(|outcome| tell(&subject, outcome, seed, &mut lines));
    let seconds = started.elapsed().as_secs_f64();
    let (finding, replay) = told.unzip();
    let (name, passed) = (subject.name.to_owned(), finding.is_none());
    let explored = 1;
    let result = ScenarioResult {
        name,
        passed,
        bound,
        pieces,
        explored,
        schedules,
        states,
        random_schedules,
        seconds,
        finding,
        replay,
    };
    (result, lines)
}
