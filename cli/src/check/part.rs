//! What a part of the check is, and the list of them.
//!
//! To add one: a file in this folder with a unit type that is a [`Part`]; a field for what it finds out in `document.rs` (an
//! `Option` of a type that serde can write and read, `#[serde(default)]` if results without it are about); its line in [`PARTS`]. A part's program
//! prints its progress itself, and hands its result over in a file (`handover.rs`).

use super::document::{Document, Level};
use super::shard::Shard;
use super::{calibration, explored, fuzzing, mutants, weak_memory};
use crate::failure::Failure;

/// All parts, in the order in which they are run.
pub(super) const PARTS: [&dyn Part; 6] = [
    &explored::Scenarios,
    &explored::PastBugs,
    &weak_memory::Loom,
    &mutants::Mutation,
    &fuzzing::Fuzzing,
    &calibration::Calibration,
];

/// What is asked of every part.
pub(super) struct Asked {
    pub(super) level: Level,
    /// Only what has one of these in its name; empty for all.
    pub(super) names: Vec<String>,
    pub(super) seed: u64,
    /// Only this share of the work.
    pub(super) shard: Option<Shard>,
    /// How many threads of the host may work.
    pub(super) jobs: u32,
}

/// What came of a part.
pub(super) struct Verdict {
    /// All is as it should be.
    pub(super) is_sound: bool,
    /// The counts that matter, in a few words.
    pub(super) counts: String,
    /// Seconds of work, on one thread of the host.
    pub(super) seconds: f64,
}

/// A part of the check. It keeps nothing: what it finds out is in the document, whether it was run here or read from a file.
pub(super) trait Part: Sync {
    /// What `--part` calls it.
    fn name(&self) -> &'static str;

    /// Whether it is run when no part is asked for by name.
    fn is_run_by(&self, level: Level) -> bool;

    /// Whether words on the command line choose from it.
    fn takes_names(&self) -> bool {
        false
    }

    /// Whether words choose from it too where no part is asked for.
    fn is_meant_by_names(&self) -> bool {
        self.takes_names()
    }

    /// Whether each shard runs a share of it. If not, the first runs all of it.
    fn is_sharded(&self) -> bool {
        true
    }

    /// Runs it, tells how it goes, and puts what it found out into the document.
    ///
    /// # Errors
    /// When it could not be run. What it finds is no error.
    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure>;

    /// Joins what the shards found out, which are all there are and in order.
    ///
    /// # Errors
    /// A sentence, if their results do not fit together.
    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String>;

    /// What came of it; `None` if it was not run.
    fn verdict(&self, document: &Document) -> Option<Verdict>;

    /// Its section in `docs/results/check.md`; `None` if it was not run or has none.
    fn section(&self, document: &Document) -> Option<String>;
}
