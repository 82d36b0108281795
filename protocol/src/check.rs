//! What the checkers' programs find out, as `./ceasefire check` collects it: one definition for those who write it and those who read it.
//!
//! A scenario's schedules may be explored in pieces, on several threads or machines. What came of each piece is a result by itself;
//! [`ScenarioResult::join`] makes one of two.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What the explorer's program hands over: what it was not asked for is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explored {
    /// Each scenario with the real code.
    pub scenarios: Option<Vec<ScenarioResult>>,
    /// Each past bug.
    pub past_bugs: Option<Vec<PastBugResult>>,
}

/// One scenario with the real code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// What it is called on the command line.
    pub name: String,
    /// Nothing was found.
    pub passed: bool,
    /// All schedules were explored whose deviations cost no more.
    pub bound: u8,
    /// Into how many pieces the schedules were cut. What a piece explores depends on that, and on nothing else.
    pub pieces: u32,
    /// How many of the pieces are in this result.
    pub explored: u32,
    /// How many schedules that were.
    pub schedules: u64,
    /// How many states were told apart; one that several pieces met counts for each.
    pub states: u64,
    /// Schedules at random, beyond those.
    pub random_schedules: u64,
    /// On one thread of the host, all pieces together.
    pub seconds: f64,
    /// The promise that was broken, in a sentence.
    pub finding: Option<String>,
    /// What `--replay` takes.
    pub replay: Option<String>,
}

/// One past bug.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastBugResult {
    /// What it is called on the command line.
    pub name: String,
    /// Whose bug it was.
    pub source: String,
    /// The scenario that shows it.
    pub scenario: String,
    /// The check found it, as the violation that it is.
    pub found: bool,
    /// The cheapest schedule that shows it.
    pub price: u8,
    /// How many schedules were explored until then.
    pub schedules: u64,
    /// On one thread of the host.
    pub seconds: f64,
    /// The promise that was broken, in a sentence.
    pub finding: Option<String>,
    /// What `--replay` takes.
    pub replay: Option<String>,
}

impl ScenarioResult {
    /// Takes in what came of other pieces of the same scenario.
    ///
    /// # Errors
    /// A sentence, if they are no other pieces of it.
    pub fn join(&mut self, other: ScenarioResult) -> Result<(), String> {
        let explored = self.explored.saturating_add(other.explored);
        if (&self.name, self.bound, self.pieces) != (&other.name, other.bound, other.pieces)
            || explored > self.pieces
        {
            return Err(alloc::format!("what came of scenario {} does not fit together", self.name));
        }
        self.explored = explored;
        self.passed &= other.passed;
        self.schedules += other.schedules;
        self.states += other.states;
        self.random_schedules += other.random_schedules;
        self.seconds += other.seconds;
        self.finding = self.finding.take().or(other.finding);
        self.replay = self.replay.take().or(other.replay);
        Ok(())
    }
}
