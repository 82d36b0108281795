//! What runs now and what is left, on standard error: a bar on a terminal, else a line for each run.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The bar: how far, how long so far, what now.
const BAR: &str = "[{bar:24}] {pos}/{len} runs, {elapsed} gone{msg}";

/// The progress of a number of runs.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    begun: Mutex<usize>,
    runs: usize,
}

impl Progress {
    /// Nothing has been run yet.
    pub(super) fn new(runs: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(runs as u64);
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Progress { bar, begun: Mutex::new(0), runs }
    }

    /// A run begins; `left` is how long everything from here on will take.
    pub(super) fn begin(&self, what: &str, left: Duration) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun += 1;
        let left = clock(left);
        match &self.bar {
            Some(bar) => bar.set_message(format!(", {left} left: {what}")),
            None => eprintln!("[{begun}/{}] {left} left: {what}", self.runs),
        }
    }

    /// That many runs are behind us, made or left out.
    pub(super) fn advance(&self, runs: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(runs as u64);
        }
    }

    /// Nothing more will be run: the bar goes away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// "4:05".
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_secs(245)), "4:05");
        assert_eq!(clock(Duration::ZERO), "0:00");
    }

    #[test]
    fn the_bars_form_is_one_that_indicatif_knows() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
