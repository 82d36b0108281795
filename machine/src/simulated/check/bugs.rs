//! The past bugs: each must be found, by the cheapest schedule that shows it, as the violation that it is.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use explorer::{Exhaustive, explore};
use protocol::check::PastBugResult;

use super::super::past_bug::PastBug;
use super::options::Check;
use super::subject::Subject;
use super::{tell, workers};

/// A past bug is looked for up to this price.
const HIGHEST_PRICE: u8 = 4;
/// And for no more schedules than this.
const MOST_SCHEDULES: u64 = 300_000;

/// Looks for this process's share of these bugs.
pub(super) fn find_all(check: &Check, chosen: &[&'static PastBug]) -> Vec<PastBugResult> {
    println!("{:<40} {:>6} {:>10} {:>8}  found in", "past bug", "price", "schedules", "seconds");
    let of_all = chosen.iter().copied().enumerate();
    let share: Vec<_> = of_all.skip(check.shard.index).step_by(check.shard.count).collect();
    let results = Mutex::new(Vec::new());
    let work = |(place, bug): &(usize, &'static PastBug), after_each: &dyn Fn()| {
        let (result, lines) = find(bug, after_each);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((*place, result));
        lines
    };
    workers::share_out(&share, check.jobs, |(_, bug)| bug.name, work);
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

fn find(bug: &'static PastBug, after_each: &dyn Fn()) -> (PastBugResult, String) {
    let subject = Subject::of_bug(bug);
    let started = Instant::now();
    let mut schedules = 0;
    let mut found = None;
    let mut price = 0;
    for bound in 0..=HIGHEST_PRICE {
        let few_enough = |runs| {
            after_each();
            schedules + runs < MOST_SCHEDULES
        };
        let mut exhaustive = Exhaustive::new(bound);
        let (runs, outcome) = explore(&mut exhaustive, subject.cpus(), &|| subject.program(), few_enough);
        (schedules, price) = (schedules + runs, bound);
        if outcome.is_some() || schedules >= MOST_SCHEDULES {
            found = outcome;
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let mut lines = String::new();
    let told = found.map(|outcome| tell(&subject, outcome, None, &mut lines));
    let as_expected = told.as_ref().is_some_and(|(sentence, _)| sentence.starts_with(bug.breaks));
    let word = match &told {
        None => "NOT FOUND",
        Some(_) if !as_expected => "FOUND AS SOMETHING ELSE",
        Some(_) => bug.scenario.name,
    };
    let _ = writeln!(lines, "{:<40} {price:>6} {schedules:>10} {seconds:>8.2}  {word}", bug.name);
    if let (false, Some((sentence, token))) = (as_expected, &told) {
        let _ = writeln!(lines, "    {sentence}\n    {token}");
    }
    let (finding, replay) = told.unzip();
    let result = PastBugResult {
        name: bug.name.to_owned(),
        source: bug.source.to_owned(),
        scenario: bug.scenario.name.to_owned(),
        found: as_expected,
        price,
        schedules,
        seconds,
        finding,
        replay,
    };
    (result, lines)
}
