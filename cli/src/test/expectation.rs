//! What must come out of a run inside the guest, and how far it did.

use protocol::report::{Exit, Report, Row};
use regex::RegexBuilder;
use serde::Deserialize;

/// Exit status that a test wants.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum ExpectedExit {
    Status(u8),
    /// Only `nonzero` is a word with a meaning.
    Word(String),
}

impl Default for ExpectedExit {
    fn default() -> Self {
        ExpectedExit::Status(0)
    }
}

/// Everything that a test wants; what is not given is not looked at, except the exit status.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Expectation {
    #[serde(default, rename = "expect_exit")]
    pub(super) exit: ExpectedExit,
    #[serde(default, rename = "expect_stdout")]
    output: Vec<String>,
    #[serde(default, rename = "reject_stdout")]
    rejected_output: Vec<String>,
    #[serde(default, rename = "expect_stderr")]
    errors: Vec<String>,
    #[serde(default, rename = "expect_ledger")]
    ledger: Vec<String>,
    #[serde(default, rename = "expect_failure")]
    pub(super) failure: Option<String>,
}

/// What did come out.
pub(super) struct Observed<'a> {
    pub(super) report: &'a Report,
    pub(super) output: &'a str,
    pub(super) errors: &'a str,
}

impl Expectation {
    /// The same with `fill` applied to every text.
    pub(super) fn filled(&self, fill: impl Fn(&str) -> String) -> Self {
        let all = |texts: &[String]| texts.iter().map(|text| fill(text)).collect();
        Expectation {
            exit: self.exit.clone(),
            output: all(&self.output),
            rejected_output: all(&self.rejected_output),
            errors: all(&self.errors),
            ledger: all(&self.ledger),
            failure: self.failure.as_deref().map(&fill),
        }
    }

    /// Every way in which what came out differs; empty when all is well.
    pub(super) fn differences(&self, observed: &Observed) -> Vec<String> {
        let mut found = Vec::new();
        let status = match observed.report.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128u8.saturating_add(signal),
        };
        if !self.accepts(status) {
            found.push(format!("it ended with status {status}, not {}", self.wanted_exit()));
        }
        for (patterns, wanted, text, name) in [
            (&self.output, true, observed.output, "standard output"),
            (&self.rejected_output, false, observed.output, "standard output"),
            (&self.errors, true, observed.errors, "standard error"),
        ] {
            for pattern in patterns {
                match matches(pattern, text) {
                    Ok(is) if is == wanted => {}
                    Ok(true) => found.push(format!("{name} has '{pattern}'")),
                    Ok(false) => found.push(format!("{name} has nothing like '{pattern}'")),
                    Err(error) => found.push(error),
                }
            }
        }
        found.extend(self.ledger.iter().filter_map(|rule| check_ledger(rule, observed.report).err()));
        found
    }

    /// Whether an exit status is the wanted one.
    pub(super) fn accepts(&self, status: u8) -> bool {
        match &self.exit {
            ExpectedExit::Status(wanted) => *wanted == status,
            ExpectedExit::Word(word) => word == "nonzero" && status != 0,
        }
    }

    fn wanted_exit(&self) -> String {
        match &self.exit {
            ExpectedExit::Status(status) => status.to_string(),
            ExpectedExit::Word(word) => word.clone(),
        }
    }
}

/// Whether a regular expression, in which ^ and $ match at lines, matches somewhere.
pub(super) fn matches(pattern: &str, text: &str) -> Result<bool, String> {
    let regex = RegexBuilder::new(pattern).multi_line(true).build();
    regex.map(|regex| regex.is_match(text)).map_err(|_| format!("'{pattern}' is no regular expression"))
}

/// `ROW = VALUE`, `ROW <= VALUE` or `ROW >= VALUE`; a row is `group.name`, or `group` for the sum of its rows.
fn check_ledger(rule: &str, report: &Report) -> Result<(), String> {
    let words: Vec<_> = rule.split_whitespace().collect();
    let [row, relation, value] = words[..] else {
        return Err(format!("'{rule}' is no rule for the ledger"));
    };
    let value: u64 = value.parse().map_err(|_| format!("'{value}' in '{rule}' is no number"))?;
    let is_meant = |one: &&Row| one.group == row || format!("{}.{}", one.group, one.name) == row;
    let mut rows = report.ledger.iter().filter(is_meant).peekable();
    if rows.peek().is_none() {
        return Err(format!("the ledger has no row {row}"));
    }
    let actual: u64 = rows.map(Row::total).sum();
    let holds = match relation {
        "=" => actual == value,
        "<=" => actual <= value,
        ">=" => actual >= value,
        _ => return Err(format!("'{relation}' in '{rule}' is no relation")),
    };
    if holds { Ok(()) } else { Err(format!("the ledger has {row} {actual}, not {relation} {value}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::report::{Clock, Memory, Row, SCHEMA};

    fn report() -> Report {
        let row = |group: &str, name: &str, per_cpu: &[u64]| Row {
            group: group.into(),
            name: name.into(),
            per_cpu: per_cpu.into(),
        };
        Report {
            schema: SCHEMA.into(),
            exit: Exit::Signal(11),
            cpus: 2,
            mechanisms: Vec::new(),
            ledger: vec![row("sent", "munmap", &[3, 4]), row("sent", "fork", &[1, 0])],
            unknown_system_calls: Vec::new(),
            clock: Clock::default(),
            memory: Memory::default(),
            processor_time: None,
        }
    }

    fn expectation(text: &str) -> Expectation {
        toml::from_str(text).unwrap()
    }

    fn differences(text: &str) -> Vec<String> {
        let report = report();
        expectation(text).differences(&Observed { report: &report, output: "one\ntwo\n", errors: "" })
    }

    #[test]
    fn a_run_as_wanted_has_no_differences() {
        let wanted = "expect_exit = 139\nexpect_stdout = ['^two$', '^one\\ntwo$']\nreject_stdout = ['three']\n\
                      expect_ledger = ['sent.munmap = 7', 'sent <= 8', 'sent.fork >= 1']";
        assert_eq!(differences(wanted), Vec::<String>::new());
        assert!(differences("expect_exit = 'nonzero'").is_empty());
    }

    #[test]
    fn every_difference_is_named() {
        for (wanted, word) in [
            ("", "status 139"),
            ("expect_exit = 0", "not 0"),
            ("expect_exit = 139\nexpect_stdout = ['^three$']", "nothing like"),
            ("expect_exit = 139\nreject_stdout = ['^two$']", "has '^two$'"),
            ("expect_exit = 139\nexpect_stderr = ['x']", "standard error"),
            ("expect_exit = 139\nexpect_stdout = ['(']", "no regular expression"),
            ("expect_exit = 139\nexpect_ledger = ['sent.munmap = 8']", "sent.munmap 7, not = 8"),
            ("expect_exit = 139\nexpect_ledger = ['sent.nothing = 0']", "no row"),
            ("expect_exit = 139\nexpect_ledger = ['sent.munmap 8']", "no rule"),
        ] {
            let found = differences(wanted);
            assert!(found.len() == 1 && found[0].contains(word), "{wanted}: {found:?}");
        }
    }

    #[test]
    fn texts_are_filled_in() {
        let filled =
            expectation("expect_ledger = ['sent = {others}']").filled(|text| text.replace("{others}", "3"));
        assert_eq!(filled.ledger, ["sent = 3"]);
    }
}
