//! The result of a check, as JSON, and as tables for the documents.

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

impl Report {
    /// `docs/results/check.md`.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "# What the check explores and finds\n\nWritten by `./ceasefire check{} --table docs/results/check.md`; \
             docs/guide/check.md says what the columns mean.\nSeconds are of one host thread, and depend on what else the host does.\n\n\
             | scenario, with the real code | price | schedules | states | at random | seconds | |\n|---|---|---|---|---|---|---|\n",
            if self.level == "normal" { String::new() } else { format!(" --{}", self.level) },
        );
        for result in &self.scenarios {
            let word = if result.passed { "passed" } else { "**failed**" };
            text += &format!(
                "| {} | {} | {} | {} | {} | {:.1} | {word} |\n",
                result.name,
                result.bound,
                result.schedules,
                result.states,
                result.random_schedules,
                result.seconds
            );
        }
        text += "\n| past bug | whose | scenario | price | schedules | seconds | |\n|---|---|---|---|---|---|---|\n";
        for result in &self.past_bugs {
            let word = if result.found { "found" } else { "**missed**" };
            text += &format!(
                "| {} | {} | {} | {} | {} | {:.2} | {word} |\n",
                result.name, result.source, result.scenario, result.price, result.schedules, result.seconds
            );
        }
        text
    }
}
