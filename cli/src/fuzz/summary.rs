//! What a fuzzing came to, as it is counted, shown, saved and merged.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use fuzz::Program;
use serde::{Deserialize, Serialize};

use super::known::{self, Known};
use crate::failure::Failure;

const SCHEMA: &str = "ceasefire.fuzz/1";

/// One kind of difference that is not explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What differs, the same for all programs that differ so.
    pub(crate) class: String,
    /// Programs.
    pub(crate) count: u64,
    /// The first one, as small as it could be made.
    pub(crate) program: String,
    /// Why it is meant, if it is known.
    #[serde(skip)]
    pub(crate) known: Option<&'static str>,
}

impl Finding {
    pub(crate) fn new(
        program: &Program,
        (class, known): (String, Option<&'static Known>),
        _system: &str,
    ) -> Self {
        Finding { class, count: 1, program: program.to_string(), known: known.map(|known| known.name) }
    }
}

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    schema: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) systems: Vec<String>,
    pub(crate) seconds: f64,
    pub(crate) programs: u64,
    /// Programs with calls at the same time.
    pub(crate) racing: u64,
    /// Traces that were judged, by system.
    pub(crate) traces: BTreeMap<String, u64>,
    pub(crate) boots: u64,
    pub(crate) schedules: u64,
    /// Steps by kind.
    pub(crate) operations: BTreeMap<String, u64>,
    /// Programs whose answers are among several that may be, by reason.
    pub(crate) open: BTreeMap<String, u64>,
    /// Traces in which a call went where the model knows nothing.
    pub(crate) wild: u64,
    /// Known differences, by name.
    pub(crate) known: BTreeMap<String, u64>,
    /// Differences without an explanation.
    pub(crate) unexplained: Vec<Finding>,
}

impl Summary {
    pub(crate) fn new(seed: u64, systems: Vec<String>) -> Self {
        Summary { schema: SCHEMA.into(), seeds: vec![seed], systems, ..Summary::default() }
    }

    pub(crate) fn count(&mut self, program: &Program) {
        self.programs += 1;
        self.racing += u64::from(program.races());
        for step in program.steps() {
            *self.operations.entry(step.call.name().into()).or_default() += 1;
        }
    }

    pub(crate) fn count_run(&mut self, system: &str) {
        *self.traces.entry(system.into()).or_default() += 1;
    }

    pub(crate) fn loosen(&mut self, why: &[&'static str]) {
        for reason in why {
            *self.open.entry((*reason).into()).or_default() += 1;
        }
    }

    /// Counts a difference; says whether it is unexplained and of a new kind.
    pub(crate) fn add(&mut self, finding: Finding) -> bool {
        if let Some(known) = finding.known {
            *self.known.entry(known.into()).or_default() += 1;
            return false;
        }
        match self.unexplained.iter_mut().find(|other| other.class == finding.class) {
            Some(other) => {
                other.count += 1;
                false
            }
            None => {
                self.unexplained.push(finding);
                true
            }
        }
    }

    pub(crate) fn newest(&mut self) -> Option<&mut Finding> {
        self.unexplained.last_mut()
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.unexplained.is_empty()
    }

    /// Where it stands, in a line.
    pub(crate) fn line(&self) -> String {
        let differing: u64 = self.unexplained.iter().map(|finding| finding.count).sum();
        let known: u64 = self.known.values().sum();
        format!(
            "{:>4.0} s  {} programs, {} boots, {} schedules; {known} known differences, {differing} unexplained of {} kinds",
            self.seconds,
            self.programs,
            self.boots,
            self.schedules,
            self.unexplained.len()
        )
    }

    /// Everything, for a terminal.
    pub(crate) fn table(&self) -> String {
        let counts = |counts: &BTreeMap<String, u64>| {
            counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "{} programs ({} with calls at the same time), {} operations: {}\ntraces: {}; {} boots, {} schedules; {:.0} s\n",
            self.programs,
            self.racing,
            self.operations.values().sum::<u64>(),
            counts(&self.operations),
            counts(&self.traces),
            self.boots,
            self.schedules,
            self.seconds
        );
        for (reason, count) in &self.open {
            text.push_str(&format!("{count:>8}  several answers may be: {reason}\n"));
        }
        for (name, count) in &self.known {
            let reason = known::ALL.iter().find(|known| known.name == name).map_or("", |known| known.reason);
            text.push_str(&format!("{count:>8}  {name}: {reason}\n"));
        }
        if self.wild > 0 {
            text.push_str(&format!(
                "{:>8}  traces not judged: a call went where the model knows nothing\n",
                self.wild
            ));
        }
        for finding in &self.unexplained {
            text.push_str(&format!("{:>8}  UNEXPLAINED: {}\n", finding.count, finding.class));
        }
        if self.is_sound() {
            text.push_str("no difference without an explanation\n");
        }
        text
    }

    /// Everything, as a page of the documents.
    pub(crate) fn document(&self) -> String {
        let mut text = String::from(
            "# Fuzzing across the three systems\n\nGenerated by `./ceasefire fuzz --table`.\n\n",
        );
        let seeds: Vec<_> = self.seeds.iter().map(u64::to_string).collect();
        text.push_str(&format!(
            "Systems: {}. Seeds: {}. {:.0} seconds of fuzzing.\n\n| | |\n|---|---|\n",
            self.systems.join(", "),
            seeds.join(", "),
            self.seconds
        ));
        let mut row = |name: &str, count: u64| text.push_str(&format!("| {name} | {count} |\n"));
        row("programs", self.programs);
        row("of them with calls at the same time", self.racing);
        row("boots of guests", self.boots);
        row("schedules on the machine", self.schedules);
        for (system, count) in &self.traces {
            row(&format!("traces judged, {system}"), *count);
        }
        row("operations", self.operations.values().sum());
        for (name, count) in &self.operations {
            row(&format!("`{name}`"), *count);
        }
        row("differences without an explanation", self.unexplained.iter().map(|finding| finding.count).sum());
        row("traces not judged", self.wild);
        text.push_str("\n| known difference | traces | reason |\n|---|---|---|\n");
        for known in known::ALL {
            let count = self.known.get(known.name).unwrap_or(&0);
            text.push_str(&format!("| {} | {count} | {} |\n", known.name, known.reason));
        }
        text.push_str("\n| several answers may be, because | traces |\n|---|---|\n");
        for (reason, count) in &self.open {
            text.push_str(&format!("| {reason} | {count} |\n"));
        }
        if !self.unexplained.is_empty() {
            text.push_str("\n| without an explanation | traces |\n|---|---|\n");
            for finding in &self.unexplained {
                text.push_str(&format!("| {} | {} |\n", finding.class, finding.count));
            }
        }
        text
    }

    /// The sum of several saved ones.
    ///
    /// # Errors
    /// A usage failure for a file that is none.
    pub(crate) fn merged(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut parts = Vec::new();
        for file in files {
            let refuse = |why: String| Failure::usage(format!("cannot merge {}: {why}", file.display()));
            let text = fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
            let part: Summary = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
            if part.schema != SCHEMA {
                return Err(refuse(format!("its form is '{}', not {SCHEMA}", part.schema)));
            }
            parts.push(part);
        }
        Ok(Self::sum(parts))
    }

    /// The sum of several.
    pub(crate) fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Summary { schema: SCHEMA.into(), ..Summary::default() };
        parts.into_iter().for_each(|part| sum.add_all(part));
        sum
    }

    fn add_all(&mut self, part: Summary) {
        let add = |sum: &mut BTreeMap<String, u64>, part: BTreeMap<String, u64>| {
            for (name, count) in part {
                *sum.entry(name).or_default() += count;
            }
        };
        self.seeds.extend(part.seeds);
        self.seeds.sort_unstable();
        self.seeds.dedup();
        for system in part.systems {
            if !self.systems.contains(&system) {
                self.systems.push(system);
            }
        }
        self.seconds += part.seconds;
        self.programs += part.programs;
        self.racing += part.racing;
        self.boots += part.boots;
        self.schedules += part.schedules;
        self.wild += part.wild;
        add(&mut self.traces, part.traces);
        add(&mut self.operations, part.operations);
        add(&mut self.open, part.open);
        add(&mut self.known, part.known);
        for finding in part.unexplained {
            match self.unexplained.iter_mut().find(|other| other.class == finding.class) {
                Some(other) => other.count += finding.count,
                None => self.unexplained.push(finding),
            }
        }
    }
}
