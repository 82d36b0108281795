//! Scenarios with the real code, and past bugs: what the explorer's program finds out (`machine/src/simulated/check/`).

use std::collections::BTreeMap;
use std::fmt::Write;

use protocol::check::{Explored, PastBugResult, ScenarioResult};

use super::document::{Document, Level};
use super::handover::Handover;
use super::part::{Asked, Part, Verdict};
use super::{EXPLORER, program, start};
use crate::failure::Failure;

/// Every schedule of every scenario up to a bound, and some at random beyond.
pub(super) struct Scenarios;
/// Mistakes that kernels once made, which must be found.
pub(super) struct PastBugs;

/// Runs the program for one of the two.
fn explore(part: &str, asked: &Asked) -> Result<Explored, Failure> {
    let handover = Handover::new()?;
    let mut words = vec!["--only".to_owned(), part.to_owned(), "--json".to_owned(), handover.path()];
    words.extend(asked.level.flag().map(str::to_owned));
    words.extend(["--seed".to_owned(), asked.seed.to_string(), "--jobs".to_owned(), asked.jobs.to_string()]);
    words.extend(asked.shard.iter().flat_map(|shard| ["--shard".to_owned(), shard.to_string()]));
    words.extend(asked.names.iter().cloned());
    start(program(EXPLORER, &words))?;
    handover.take()
}

impl Part for Scenarios {
    fn name(&self) -> &'static str {
        "scenarios"
    }

    fn is_run_by(&self, _: Level) -> bool {
        true
    }

    fn takes_names(&self) -> bool {
        true
    }

    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure> {
        let mut results = explore(self.name(), asked)?.scenarios;
        // By name, as joined shards are, whose own order says nothing.
        results.iter_mut().for_each(|results| results.sort_by(|one, other| one.name.cmp(&other.name)));
        document.scenarios = results;
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        let mut results: BTreeMap<&str, ScenarioResult> = BTreeMap::new();
        for result in shards.iter().flat_map(|shard| shard.scenarios.iter().flatten()) {
            match results.get_mut(result.name.as_str()) {
                Some(known) => known.join(result.clone())?,
                None => drop(results.insert(&result.name, result.clone())),
            }
        }
        if let Some(part) = results.values().find(|result| result.explored != result.pieces) {
            return Err(format!("of scenario {} a piece is missing", part.name));
        }
        whole.scenarios = Some(results.into_values().collect());
        Ok(())
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let results = document.scenarios.as_deref()?;
        let failed = results.iter().filter(|result| !result.passed).count();
        let schedules: u64 = results.iter().map(|result| result.schedules + result.random_schedules).sum();
        Some(Verdict {
            is_sound: failed == 0,
            counts: format!("{} scenarios, {failed} failed, {schedules} schedules", results.len()),
            seconds: results.iter().map(|result| result.seconds).sum(),
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let mut text = String::from(
            "| scenario, with the real code | price | schedules | states | at random | seconds | |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for result in document.scenarios.as_deref()? {
            let ScenarioResult { name, bound, schedules, states, random_schedules, seconds, .. } = result;
            let word = if result.passed { "passed" } else { "**failed**" };
            let _ = writeln!(
                text,
                "| {name} | {bound} | {schedules} | {states} | {random_schedules} | {seconds:.1} | {word} |"
            );
        }
        Some(text)
    }
}

impl Part for PastBugs {
    fn name(&self) -> &'static str {
        "past-bugs"
    }

    fn is_run_by(&self, _: Level) -> bool {
        true
    }

    fn takes_names(&self) -> bool {
        true
    }

    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure> {
        document.past_bugs = explore(self.name(), asked)?.past_bugs;
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        let mut results: Vec<_> =
            shards.iter().flat_map(|shard| shard.past_bugs.iter().flatten()).cloned().collect();
        results.sort_by(|one, other| one.name.cmp(&other.name));
        match results.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(format!("the past bug {} was looked for twice", pair[0].name)),
            None => {
                whole.past_bugs = Some(results);
                Ok(())
            }
        }
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let results = document.past_bugs.as_deref()?;
        let missed = results.iter().filter(|result| !result.found).count();
        Some(Verdict {
            is_sound: missed == 0,
            counts: format!("{} past bugs, {missed} missed", results.len()),
            seconds: results.iter().map(|result| result.seconds).sum(),
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let mut text = String::from(
            "| past bug | whose | scenario | price | schedules | seconds | |\n|---|---|---|---|---|---|---|\n",
        );
        for result in document.past_bugs.as_deref()? {
            let PastBugResult { name, source, scenario, price, schedules, seconds, .. } = result;
            let word = if result.found { "found" } else { "**missed**" };
            let _ = writeln!(
                text,
                "| {name} | {source} | {scenario} | {price} | {schedules} | {seconds:.2} | {word} |"
            );
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Names of several words in backticks, as bugs are called.
    fn names(text: &str) -> impl Iterator<Item = String> {
        let quoted = text.split('`').skip(1).step_by(2);
        let is_name = |word: &&str| {
            word.contains('-') && word.chars().all(|letter| letter == '-' || letter.is_ascii_lowercase())
        };
        quoted.filter(is_name).map(str::to_owned)
    }

    #[test]
    fn the_list_of_rows_names_every_past_bug_and_no_other() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let rows: BTreeSet<_> = names(&read("docs/guide/past-bugs.md")).collect();
        let barriers: BTreeSet<_> = names(&read("docs/design/0010-checkers.md")).collect();
        let files = fs::read_dir(root.join("machine/src/simulated/past_bugs")).unwrap();
        let bugs: BTreeSet<_> = files
            .filter_map(|file| Some(file.unwrap().path().file_stem()?.to_str()?.replace('_', "-")))
            .filter(|name| name != "mod")
            .collect();
        assert_eq!(rows.difference(&bugs).collect::<Vec<_>>(), [""; 0], "there are no such bugs");
        let unnamed: Vec<_> =
            bugs.iter().filter(|bug| !rows.contains(*bug) && !barriers.contains(*bug)).collect();
        assert_eq!(unnamed, [""; 0], "bugs of no row");
    }
}
