//! `workloads/tests.toml`: the tests inside the guest, as written, and the boots that each of them stands for.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::disks::Wanted;
use super::expectation::Expectation;
use crate::failure::Failure;
use crate::project;
use crate::qemu::{Board, Mode};
use crate::result::System;
use crate::sanitizer;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tier {
    Quick,
    Full,
    Deep,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    #[default]
    Deterministic,
    Single,
    Parallel,
}

/// One `[[test]]`, as the head of the file explains its keys.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) workload: Option<String>,
    pub(super) program: Option<PathBuf>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) disks: Vec<Wanted>,
    #[serde(default)]
    pub(super) stdin: String,
    #[serde(default = "two_cpus")]
    cpus: Vec<u32>,
    #[serde(default = "usual_memory")]
    pub(super) memory: String,
    #[serde(default)]
    pub(super) machine: Board,
    #[serde(default)]
    mode: ModeName,
    #[serde(default = "ours")]
    pub(super) system: System,
    #[serde(default)]
    pub(super) trace: bool,
    #[serde(default)]
    seeds: Vec<u64>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    #[serde(default)]
    pub(super) with: Vec<String>,
    pub(super) suppress: Option<String>,
    #[serde(default)]
    pub(super) kernel: Vec<String>,
    #[serde(default)]
    sanitize: bool,
    #[serde(default = "once")]
    repeat: u32,
    #[serde(default)]
    pub(super) repeats_exactly: bool,
    #[serde(default = "a_minute")]
    time_limit_seconds: u64,
    pub(super) tier: Tier,
    pub(super) needs: Option<String>,
    #[serde(flatten)]
    pub(super) expectation: Expectation,
}

fn two_cpus() -> Vec<u32> {
    vec![2]
}

fn usual_memory() -> String {
    "256M".into()
}

fn ours() -> System {
    System::Ceasefire
}

fn once() -> u32 {
    1
}

fn a_minute() -> u64 {
    60
}

/// One start of a guest for a test.
#[derive(Clone, Debug)]
pub(super) struct Boot<'a> {
    pub(super) case: &'a Case,
    pub(super) cpus: u32,
    pub(super) mode: Mode,
    pub(super) sanitize: bool,
    turn: u32,
}

#[derive(Debug, Deserialize)]
struct Document {
    test: Vec<Case>,
}

/// The tests of a file.
///
/// # Errors
/// A host failure when it cannot be read.
pub(super) fn read() -> Result<Vec<Case>, Failure> {
    let path = project::root().join("workloads/tests.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|error| Failure::host("read workloads/tests.toml", error))?;
    parse(&text).map_err(|error| Failure::host("read workloads/tests.toml", error))
}

/// Every key of a test. (The reader itself cannot refuse unknown keys in a flattened structure.)
const KEYS: [&str; 30] = [
    "name",
    "workload",
    "program",
    "args",
    "files",
    "disks",
    "stdin",
    "cpus",
    "memory",
    "machine",
    "mode",
    "system",
    "trace",
    "seeds",
    "without",
    "with",
    "suppress",
    "kernel",
    "sanitize",
    "repeat",
    "time_limit_seconds",
    "tier",
    "needs",
    "expect_exit",
    "expect_stdout",
    "reject_stdout",
    "expect_stderr",
    "expect_ledger",
    "expect_failure",
    "repeats_exactly",
];

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let tests = table.get("test").and_then(toml::Value::as_array).into_iter().flatten();
    for key in tests.filter_map(toml::Value::as_table).flat_map(toml::Table::keys) {
        if !KEYS.contains(&key.as_str()) {
            return Err(format!("a test has the unknown key '{key}'"));
        }
    }
    toml::from_str::<Document>(text).map(|document| document.test).map_err(|error| error.to_string())
}

impl Case {
    /// Every boot: each CPU count, with each seed, as often as said.
    pub(super) fn boots(&self) -> Vec<Boot<'_>> {
        let modes: Vec<Mode> = match self.mode {
            ModeName::Parallel => vec![Mode::Parallel],
            ModeName::Single => vec![Mode::Single],
            ModeName::Deterministic if self.seeds.is_empty() => vec![Mode::Deterministic { seed: None }],
            ModeName::Deterministic => {
                self.seeds.iter().map(|&seed| Mode::Deterministic { seed: Some(seed) }).collect()
            }
        };
        let combinations = self.cpus.iter().flat_map(|&cpus| modes.iter().map(move |&mode| (cpus, mode)));
        let boots =
            combinations.flat_map(|(cpus, mode)| (1..=self.repeat).map(move |turn| (cpus, mode, turn)));
        let sanitize = self.sanitize;
        boots.map(|(cpus, mode, turn)| Boot { case: self, cpus, mode, sanitize, turn }).collect()
    }

    /// Each boot once more with the sanitizer, if that must find nothing: a test of what is left out, or of how a run fails, has its
    /// own with the key `sanitize`.
    pub(super) fn sanitized_boots(&self) -> Vec<Boot<'_>> {
        let is_sound =
            self.suppress.is_none() && self.kernel.is_empty() && self.expectation.failure.is_none();
        if !is_sound || self.sanitize || self.system == System::Linux {
            return Vec::new();
        }
        let once = self.boots().into_iter().filter(|boot| boot.turn == 1);
        once.map(|boot| Boot { sanitize: true, ..boot }).collect()
    }
}

impl Boot<'_> {
    /// The test's name and what distinguishes this boot from its others.
    pub(super) fn name(&self) -> String {
        let seed = match self.mode {
            Mode::Deterministic { seed: Some(seed) } => format!(", seed {seed}"),
            _ => String::new(),
        };
        let sanitized = if self.sanitize { ", sanitized" } else { "" };
        let turn = if self.case.repeat > 1 { format!(", turn {}", self.turn) } else { String::new() };
        let plural = if self.cpus == 1 { "CPU" } else { "CPUs" };
        format!("{} [{} {plural}, {}{seed}{sanitized}{turn}]", self.case.name, self.cpus, self.mode.name())
    }

    /// The same boot without the sanitizer.
    pub(super) fn unwatched(&self) -> Self {
        Boot { sanitize: false, ..self.clone() }
    }

    /// How long it may take.
    pub(super) fn time_limit(&self) -> Duration {
        let limit = Duration::from_secs(self.case.time_limit_seconds);
        // A test with the key has a limit for that.
        if self.sanitize && !self.case.sanitize { limit * sanitizer::SLOWDOWN } else { limit }
    }

    /// A text of the test with `{cpus}` and `{others}` filled in.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("{cpus}", &self.cpus.to_string()).replace("{others}", &(self.cpus - 1).to_string())
    }

    /// Host threads that it keeps busy.
    pub(super) fn threads(&self) -> u32 {
        if self.mode == Mode::Parallel { self.cpus } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_list_can_be_read() {
        let cases = read().unwrap();
        assert!(!cases.is_empty());
        for case in &cases {
            assert!(case.workload.is_some() != case.program.is_some(), "{}: workload or program", case.name);
            assert!(case.boots().iter().all(|boot| (1..=64).contains(&boot.cpus)), "{}: cpus", case.name);
        }
        let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len(), "two tests have one name");
    }

    #[test]
    fn a_test_stands_for_all_combinations() {
        let text = "[[test]]\nname = 'x'\nprogram = '/bin/true'\ncpus = [1, 4]\nseeds = [5, 6]\nrepeat = 3\ntier = 'deep'";
        let cases = parse(text).unwrap();
        let boots = cases[0].boots();
        assert_eq!(boots.len(), 12);
        assert_eq!(boots[11].name(), "x [4 CPUs, deterministic, seed 6, turn 3]");
        assert_eq!(boots[11].fill("{cpus} {others}"), "4 3");
        assert!(parse(&text.replace("repeat", "repaet")).is_err());
        let sanitized = cases[0].sanitized_boots();
        assert_eq!(sanitized.len(), 4);
        assert_eq!(sanitized[3].name(), "x [4 CPUs, deterministic, seed 6, sanitized, turn 1]");
        assert!(sanitized[3].time_limit() > boots[3].time_limit());
        let broken = parse(&format!("{text}\nsuppress = 'munmap'")).unwrap();
        assert!(broken[0].sanitized_boots().is_empty());
    }
}
