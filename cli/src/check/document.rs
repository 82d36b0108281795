//! The result of a check: `ceasefire.check/1`, written by `--json` and read by `--merge`.

use protocol::check::{PastBugResult, ScenarioResult};
use protocol::mutants::Mutants;
use serde::{Deserialize, Serialize};

use super::part::Asked;
use super::shard::Shard;
use super::weak_memory::WeakMemory;
use crate::fuzz::Summary as Fuzzed;
use crate::predict::calibration;
use crate::result::Versions;

/// The form.
pub(super) const SCHEMA: &str = "ceasefire.check/1";

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Quick,
    Normal,
    Deep,
}

impl Level {
    pub(super) fn of(quick: bool, deep: bool) -> Self {
        match (quick, deep) {
            (true, _) => Level::Quick,
            (_, true) => Level::Deep,
            _ => Level::Normal,
        }
    }

    /// How it is asked for.
    pub(super) fn flag(self) -> Option<&'static str> {
        match self {
            Level::Quick => Some("--quick"),
            Level::Normal => None,
            Level::Deep => Some("--deep"),
        }
    }
}

/// All of it. A part that was not run is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) schema: String,
    /// What was checked, and by which version.
    pub(super) versions: Versions,
    pub(super) level: Level,
    pub(super) seed: u64,
    /// The scenarios and past bugs that were asked for by name; empty for all.
    pub(super) names: Vec<String>,
    /// The parts that were asked for.
    pub(super) parts: Vec<String>,
    /// Null for the whole.
    pub(super) shard: Option<Shard>,
    /// By the clock on the wall; of joined shards, the longest.
    pub(super) seconds: f64,
    pub(super) scenarios: Option<Vec<ScenarioResult>>,
    pub(super) past_bugs: Option<Vec<PastBugResult>>,
    pub(super) loom: Option<WeakMemory>,
    #[serde(default)]
    pub(super) calibration: Option<calibration::Summary>,
    #[serde(default)]
    pub(super) mutants: Option<Mutants>,
    #[serde(default)]
    pub(super) fuzz: Option<Fuzzed>,
}

impl Document {
    /// Of a check that has not begun.
    pub(super) fn new(asked: &Asked, parts: impl Iterator<Item = &'static str>) -> Self {
        Document {
            schema: SCHEMA.to_owned(),
            versions: Versions::this(),
            level: asked.level,
            seed: asked.seed,
            names: asked.names.clone(),
            parts: parts.map(str::to_owned).collect(),
            shard: asked.shard,
            seconds: 0.0,
            scenarios: None,
            past_bugs: None,
            loom: None,
            calibration: None,
            mutants: None,
            fuzz: None,
        }
    }

    /// The same check without what was found out, as a whole and not a shard of it.
    pub(super) fn emptied(&self) -> Self {
        let Document { schema, versions, level, seed, names, parts, seconds, .. } = self.clone();
        Document {
            schema,
            versions,
            level,
            seed,
            names,
            parts,
            shard: None,
            seconds,
            scenarios: None,
            past_bugs: None,
            loom: None,
            calibration: None,
            mutants: None,
            fuzz: None,
        }
    }
}
