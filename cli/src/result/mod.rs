//! The one form in which results are saved and read back (`docs/guide/results.md`): `ceasefire.result/1`.
//!
//! A document has the host, the versions of everything that took part, every raw run once, and records: one for each measured
//! case, which say from which runs their figures come. What could not be measured stands in `absent` with the reason, so that a
//! missing row is never mistaken for one that was not asked for.
//!
//! Fields are only ever added; a change of meaning changes [`SCHEMA`]. `file` writes and reads documents, `case` arranges records for whoever
//! shows them.

pub(crate) mod case;
mod file;
mod host;

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

pub(crate) use file::{ResultFile, read, read_form};
pub(crate) use host::{LinuxVersion, Machine, Versions, load};

use crate::order::Order;
use crate::qemu;
use crate::session::Outcome;

/// Name and version of the form.
pub(crate) const SCHEMA: &str = "ceasefire.result/1";

/// A whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) schema: String,
    pub(crate) machine: Machine,
    pub(crate) versions: Versions,
    /// Why the measurement ended before everything planned was measured; null when it did not.
    #[serde(default)]
    pub(crate) incomplete: Option<String>,
    /// Sentences on how this was measured, such as what was left out to stay within the time.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    /// What the workloads are, in the order of the table.
    #[serde(default)]
    pub(crate) workloads: Vec<Description>,
    pub(crate) records: Vec<Record>,
    /// What was asked for and could not be measured.
    #[serde(default)]
    pub(crate) absent: Vec<Absent>,
    /// Every run as it was.
    #[serde(default)]
    pub(crate) runs: Vec<Run>,
}

/// Whose kernel it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum System {
    Ceasefire,
    Linux,
}

impl Mode {
    /// The name used in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Deterministic => "deterministic",
            Mode::Single => "single",
            Mode::Parallel => "parallel",
        }
    }
}

impl Display for System {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            System::Ceasefire => "Ceasefire",
            System::Linux => "Linux",
        })
    }
}

/// How the guest's CPUs advanced: [`qemu::Mode`] without its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Deterministic,
    Single,
    Parallel,
}

impl From<qemu::Mode> for Mode {
    fn from(mode: qemu::Mode) -> Self {
        match mode {
            qemu::Mode::Deterministic { .. } => Mode::Deterministic,
            qemu::Mode::Single => Mode::Single,
            qemu::Mode::Parallel => Mode::Parallel,
        }
    }
}

/// One measured case. What was not measured is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) workload: String,
    pub(crate) case: Option<String>,
    pub(crate) system: System,
    /// Mechanisms that were off.
    pub(crate) without: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) seed: Option<u64>,
    pub(crate) cpus: u32,
    pub(crate) memory_mebibytes: u64,
    pub(crate) board: String,
    /// Threads of the program that took part.
    pub(crate) threads: Option<u32>,
    pub(crate) operations: Option<u64>,
    /// Of several runs the median, as all figures here.
    pub(crate) interrupts_per_operation: Option<f64>,
    /// What no correct kernel can stay below.
    pub(crate) bound_per_operation: Option<f64>,
    /// Null in deterministic mode, where no time passes but that of instructions.
    pub(crate) nanoseconds_per_operation: Option<f64>,
    /// The least and the most of the runs.
    #[serde(default)]
    pub(crate) nanoseconds_spread: Option<[f64; 2]>,
    /// In deterministic mode only: instructions of all CPUs together.
    pub(crate) instructions_per_operation: Option<f64>,
    /// What else the program measured, by its own names.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, f64>,
    /// The runs that this is the sum of.
    #[serde(default)]
    pub(crate) runs: Vec<Sample>,
}

/// What one run contributed to a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The [`Run::id`].
    pub(crate) run: u32,
    /// The measurement line as numbers.
    pub(crate) figures: BTreeMap<String, f64>,
}

/// One run as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Unique in the document.
    pub(crate) id: u32,
    pub(crate) system: System,
    pub(crate) without: Vec<String>,
    /// Mechanisms that were on, and are off by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) with: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) seed: Option<u64>,
    pub(crate) cpus: u32,
    pub(crate) memory_mebibytes: u64,
    pub(crate) board: String,
    pub(crate) command: Vec<String>,
    /// On the host, from the emulator's start to its end.
    pub(crate) wall_seconds: f64,
    /// The host's runnable processes over the last minute, just before the run.
    pub(crate) load: Option<f64>,
    /// Runs of both sides with the same number were made one after the other: their times may be compared.
    pub(crate) pair: Option<u32>,
    /// Linux counted its flushes by reason meanwhile, so its times mean nothing.
    #[serde(default)]
    pub(crate) traced: bool,
    /// What the guest's kernel reported (`protocol::report`).
    pub(crate) report: serde_json::Value,
}

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Absent {
    /// Null: every workload of that system.
    pub(crate) workload: Option<String>,
    /// Null: all of its cases.
    #[serde(default)]
    pub(crate) case: Option<String>,
    pub(crate) system: System,
    /// Null: at every number of CPUs.
    #[serde(default)]
    pub(crate) cpus: Option<u32>,
    /// A sentence.
    pub(crate) reason: String,
    /// It was tried and failed; else it cannot be measured here.
    #[serde(default)]
    pub(crate) failed: bool,
}

/// What a workload is, as its `job.toml` says, so that a saved result explains itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) title: String,
    /// What it asks, in one sentence.
    pub(crate) question: Option<String>,
    /// The source that it reproduces, S0 to S4.
    pub(crate) source: Option<String>,
    /// Its counts are the same in every run.
    pub(crate) counts_exact: bool,
    /// Except those of cases whose names begin so.
    #[serde(default)]
    pub(crate) varying: Vec<String>,
    /// What its further figures mean, by name.
    pub(crate) figures: BTreeMap<String, String>,
}

impl Absent {
    /// "urcu signal on Linux with 8 CPUs".
    pub(crate) fn subject(&self) -> String {
        let words: Vec<_> = [self.workload.as_deref(), self.case.as_deref()].into_iter().flatten().collect();
        let at = self.cpus.map(|cpus| format!(" with {}", case::cpus(cpus))).unwrap_or_default();
        match &words[..] {
            [] => format!("{}{at}", self.system),
            words => format!("{} on {}{at}", words.join(" "), self.system),
        }
    }
}

impl Description {
    /// Whether the counts of a case do not depend on which thread runs when.
    pub(crate) fn is_exact(&self, case: Option<&str>) -> bool {
        let varies = |start: &String| case.is_some_and(|case| case.starts_with(start.as_str()));
        self.counts_exact && !self.varying.iter().any(varies)
    }
}

impl Document {
    /// A document of this host and these versions.
    pub(crate) fn new(records: Vec<Record>, runs: Vec<Run>) -> Self {
        Document {
            schema: SCHEMA.into(),
            machine: Machine::this(),
            versions: Versions::this(),
            incomplete: None,
            notes: Vec::new(),
            workloads: Vec::new(),
            records,
            absent: Vec::new(),
            runs,
        }
    }
}

impl Run {
    /// What an order's outcome was. `load` was read before it started.
    pub(crate) fn of(id: u32, system: System, order: &Order, outcome: &Outcome, load: Option<f64>) -> Self {
        let words = std::iter::once(order.place.as_os_str()).chain(order.arguments.iter().map(AsRef::as_ref));
        Run {
            id,
            system,
            without: order.without.iter().map(|name| (*name).to_owned()).collect(),
            with: order.with.iter().map(|name| (*name).to_owned()).collect(),
            mode: order.mode.into(),
            seed: match order.mode {
                qemu::Mode::Deterministic { seed } => seed,
                _ => None,
            },
            cpus: order.cpus,
            memory_mebibytes: order.memory.mebibytes,
            board: order.board.to_string(),
            command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
            wall_seconds: outcome.wall.as_secs_f64(),
            load,
            pair: None,
            traced: order.trace,
            report: outcome.raw_report.clone(),
        }
    }
}

impl Record {
    /// A record of some runs of a program of which nothing is measured.
    pub(crate) fn unmeasured(workload: &str, run: &Run) -> Self {
        Record {
            workload: workload.to_owned(),
            case: None,
            system: run.system,
            without: run.without.clone(),
            mode: run.mode,
            seed: run.seed,
            cpus: run.cpus,
            memory_mebibytes: run.memory_mebibytes,
            board: run.board.clone(),
            threads: None,
            operations: None,
            interrupts_per_operation: None,
            bound_per_operation: None,
            nanoseconds_per_operation: None,
            nanoseconds_spread: None,
            instructions_per_operation: None,
            figures: BTreeMap::new(),
            runs: vec![Sample { run: run.id, figures: BTreeMap::new() }],
        }
    }
}
