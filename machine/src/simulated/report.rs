//! The result of a check, as JSON.

use serde::Serialize;

/// All of it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) schema: &'static str,
    pub(super) level: &'static str,
    pub(super) scenarios: Vec<ScenarioResult>,
    pub(super) past_bugs: Vec<PastBugResult>,
    pub(super) seconds: f64,
}

/// One scenario with the real code.
#[derive(Debug, Serialize)]
pub(super) struct ScenarioResult {
    pub(super) name: &'static str,
    pub(super) passed: bool,
    /// All schedules were explored whose deviations cost no more.
    pub(super) bound: u8,
    pub(super) schedules: u64,
    pub(super) states: usize,
    pub(super) random_schedules: u64,
    pub(super) seconds: f64,
    pub(super) finding: Option<String>,
    /// What `--replay` takes.
    pub(super) replay: Option<String>,
}

/// One past bug.
#[derive(Debug, Serialize)]
pub(super) struct PastBugResult {
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) scenario: &'static str,
    pub(super) found: bool,
    /// The cheapest schedule that shows it.
    pub(super) price: u8,
    pub(super) schedules: u64,
    pub(super) seconds: f64,
    pub(super) finding: Option<String>,
    pub(super) replay: Option<String>,
}
