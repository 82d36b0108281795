//! What the tests said: one line each as they end, and the summary.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Lines of a failure that the summary shows at its beginning and at its end.
const SHOWN: usize = 50;

/// What came of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// Why, possibly in several lines.
    Failed(String),
    /// Why it could not be run here.
    Skipped(String),
}

/// All verdicts so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    passed: usize,
    failed: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
}

impl Tally {
    /// Counts a test and says how it went.
    pub(super) fn record(&mut self, name: &str, verdict: Verdict, took: Duration) {
        let (colour, word) = match &verdict {
            Verdict::Passed => ("\x1b[32m", "ok"),
            Verdict::Failed(_) => ("\x1b[31m", "FAILED"),
            Verdict::Skipped(_) => ("\x1b[33m", "skipped"),
        };
        let (colour, plain) = if stderr().is_terminal() { (colour, "\x1b[0m") } else { ("", "") };
        eprintln!("{colour}{word:>8}{plain}  {name} ({:.1} s)", took.as_secs_f64());
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(why) => self.failed.push((name.into(), why)),
            Verdict::Skipped(why) => self.skipped.push((name.into(), why)),
        }
    }

    /// Counts tests that another program ran and named, without a line for each.
    pub(super) fn record_many(&mut self, passed: usize, failed: Vec<(String, String)>) {
        self.passed += passed;
        self.failed.extend(failed);
    }

    pub(super) fn any_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.passed + self.failed.len() + self.skipped.len() == 0
    }

    /// The reasons of everything that did not pass, then the counts in one line.
    pub(super) fn summary(&self) -> String {
        let mut text = String::new();
        for (title, entries) in [("skipped", &self.skipped), ("FAILED", &self.failed)] {
            for (name, why) in entries {
                text.push_str(&format!("{title}: {name}: {}\n", shortened(why)));
            }
        }
        text.push_str(&format!("{} passed, {} failed", self.passed, self.failed.len()));
        if !self.skipped.is_empty() {
            text.push_str(&format!(", {} skipped", self.skipped.len()));
        }
        text
    }
}

/// The beginning and the end of a text, indented from its second line on.
fn shortened(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    if lines.len() <= 2 * SHOWN {
        return lines.join("\n    ");
    }
    let left_out = format!("… ({} lines left out) …", lines.len() - 2 * SHOWN);
    let shown = [&lines[..SHOWN], &[left_out.as_str()], &lines[lines.len() - SHOWN..]].concat();
    shown.join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_counts() {
        let mut tally = Tally::default();
        tally.record("a", Verdict::Passed, Duration::ZERO);
        assert_eq!(tally.summary(), "1 passed, 0 failed");
        tally.record("b", Verdict::Failed("two\nlines".into()), Duration::ZERO);
        tally.record("c", Verdict::Skipped("no go".into()), Duration::ZERO);
        let summary = tally.summary();
        assert_eq!(summary.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        assert!(summary.contains("FAILED: b: two\n    lines\n"));
        tally.record("d", Verdict::Failed("line\n".repeat(1000)), Duration::ZERO);
        assert!(tally.summary().lines().count() < 2 * SHOWN + 10);
    }
}
