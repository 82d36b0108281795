//! Explores scenarios and past bugs, and tells how it goes.
//!
//! `./ceasefire check` starts this program and sums up; what the two say to each other is `protocol/src/check.rs`. The work is cut
//! into units that know nothing of each other, pieces of scenarios and past bugs, which are dealt to shards and, in each of those,
//! taken by threads.

mod bugs;
mod options;
mod progress;
mod scenarios;
mod subject;
mod workers;

use std::fmt::Write;

use explorer::Outcome;
use protocol::check::Explored;

use subject::Subject;

pub use options::Check;

/// Runs the check; says whether all is as it should be.
///
/// # Errors
/// A sentence about what was asked for and cannot be.
pub fn main(check: &Check) -> Result<bool, String> {
    silence_panics();
    if let Some(token) = &check.replay {
        return replay(token);
    }
    let of_scenarios = super::scenarios::ALL.iter().copied().filter(|scenario| check.wants(scenario.name));
    let of_bugs = super::past_bugs::ALL.iter().copied().filter(|bug| check.wants(bug.name));
    let (chosen, bugs): (Vec<_>, Vec<_>) = (of_scenarios.collect(), of_bugs.collect());
    if chosen.is_empty() && bugs.is_empty() {
        return Err(format!("no scenario and no past bug has '{}' in its name", check.names.join("' or '")));
    }
    let explored = Explored {
        scenarios: check.scenarios.then(|| scenarios::explore_all(check, &chosen)),
        past_bugs: check.past_bugs.then(|| bugs::find_all(check, &bugs)),
    };
    if let Some(file) = &check.json {
        let text = serde_json::to_string(&explored).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    let passed = explored.scenarios.iter().flatten().all(|result| result.passed);
    let found = explored.past_bugs.iter().flatten().all(|result| result.found);
    Ok(passed && found)
}

/// Shortens what was found and tells it; what `--replay` takes comes with it.
fn tell(subject: &Subject, outcome: Outcome, seed: Option<u64>, lines: &mut String) -> (String, String) {
    let schedule = subject.shortened(outcome.schedule);
    let sentence = outcome.finding.map(|finding| finding.sentence).unwrap_or_default();
    let token = format!("{}:{schedule}", subject.name);
    if subject.mistake.is_none() {
        let _ = writeln!(lines, "\n{}: {sentence}", subject.name);
        if let Some(seed) = seed {
            let _ = writeln!(lines, "  found with seed {seed}");
        }
        let _ = writeln!(lines, "  ./ceasefire check --replay {token}\n");
        lines.push_str(&story(&subject.replayed(schedule, true)));
    }
    (sentence, token)
}

/// Makes one run again and tells it line by line.
fn replay(token: &str) -> Result<bool, String> {
    let (name, schedule) = token.split_once(':').unwrap_or((token, "-"));
    let subject = Subject::named(name).ok_or(format!("there is no scenario and no past bug '{name}'"))?;
    let outcome = subject.replayed(schedule.parse()?, true);
    println!("{name}: {}\n\n{}", subject.scenario.about, story(&outcome));
    if let Some(finding) = &outcome.finding {
        println!("{}", finding.sentence);
    } else {
        println!("nothing was found in {} steps", outcome.steps);
    }
    Ok(outcome.finding.is_none() || subject.mistake.is_some())
}

/// The run, one line for each event, with the translation caches beside it.
fn story(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (number, (line, picture)) in outcome.story.iter().enumerate() {
        let _ = writeln!(text, "{:>4}  {line:<78} {picture}", number + 1);
    }
    text
}

/// A failed assertion of the code under check is a finding, which is told elsewhere.
pub(super) fn silence_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        if !explorer::is_exploring() {
            before(information);
        }
    }));
}
