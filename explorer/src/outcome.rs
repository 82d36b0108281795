//! How one run ended.

use crate::Schedule;

/// What was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In words: which promise, by which CPU, through what.
    pub sentence: String,
    /// The CPU that ran.
    pub cpu: usize,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was wrong, if anything.
    pub finding: Option<Finding>,
    /// How many steps all CPUs made.
    pub steps: usize,
    /// The schedule, which makes the same run again.
    pub schedule: Schedule,
    /// One line for each event, if the run was narrated: what happened, and the hardware's picture after it.
    pub story: Vec<(String, String)>,
}
