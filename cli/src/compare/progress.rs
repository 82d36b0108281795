//! One line on the terminal that says what runs now and how much is left; nothing where nobody watches.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

/// Counts the runs of a comparison.
#[derive(Debug)]
pub(super) struct Progress {
    shown: bool,
    runs: u32,
    begun: u32,
    started: Instant,
}

impl Progress {
    /// For that many runs.
    pub(super) fn of(runs: u32, quiet: bool) -> Self {
        Progress { shown: !quiet && stderr().is_terminal(), runs, begun: 0, started: Instant::now() }
    }

    /// The next run begins: "on Linux".
    pub(super) fn next(&mut self, what: &str) {
        let done = self.begun;
        self.begun += 1;
        let left = match self.started.elapsed().as_secs() * u64::from(self.runs.saturating_sub(done)) {
            _ if done == 0 => String::new(),
            product => format!(", about {} s left", product / u64::from(done) + 1),
        };
        self.show(&format!("run {} of {}: {what}{left}", self.begun, self.runs));
    }

    /// Takes the line away, so that something else can be written there.
    pub(super) fn clear(&self) {
        self.show("");
    }

    fn show(&self, text: &str) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K{text}").and_then(|()| stderr().flush());
        }
    }
}
