//! The checkers that a mutant is shown to, each a process that is told which mutant it is to be.
//!
//! They are what `./ceasefire test` and `./ceasefire check` run, cut into pieces so that the first finding ends the matter: each scenario of the
//! explorer, each of loom's models, each of shuttle's histories (fewer schedules), and the unit tests of `coherence` and `memory`.
//! Tests whose schedule is the host's are left out, since what they find today they may miss tomorrow.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::building::{Build, Program};
use crate::tree::CHOICE;

/// Tests that break the code on purpose in ways of their own.
const OF_FAULTS: [&str; 2] = ["faults_are_noticed", "every_fault_is_caught_somewhere"];

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    /// Such as `loom coming_back`.
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// What was found; `None` if nothing.
    pub(crate) finding: Option<String>,
    pub(crate) seconds: f64,
}

/// The checkers of a build.
pub(crate) fn checkers_of(build: &Build, programs: &[Program]) -> Result<Vec<Checker>, String> {
    let mut checkers = Vec::new();
    for program in programs {
        match build.name {
            "explorer" => {
                for name in listed(program, &[])? {
                    checkers.push(checker(build, &name, program, vec![name.clone()]));
                }
            }
            "units" => {
                checkers.push(checker(build, &program.target, program, vec!["--test-threads=1".into()]));
            }
            _ => {
                for line in listed(program, &["--list", "--format=terse"])? {
                    let Some(test) = line.strip_suffix(": test") else { continue };
                    let name = test.rsplit("::").next().unwrap_or(test);
                    if !OF_FAULTS.contains(&name) {
                        checkers.push(checker(build, name, program, vec!["--exact".into(), test.into()]));
                    }
                }
            }
        }
    }
    Ok(checkers)
}

fn checker(build: &Build, name: &str, program: &Program, arguments: Vec<String>) -> Checker {
    let name = format!("{} {name}", build.name);
    Checker { name, program: program.path.clone(), arguments }
}

fn listed(program: &Program, arguments: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(&program.path)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.path.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

impl Checker {
    /// Which program, and when it was built.
    pub(crate) fn identity(&self) -> String {
        let built = fs::metadata(&self.program).and_then(|metadata| metadata.modified()).ok();
        format!("{} {built:?}", self.program.display())
    }

    /// Shows it a mutant; 0 is the sound code. Whoever has not ended within `limit` is caught in a loop. What it prints goes to `log`.
    pub(crate) fn run(&self, number: usize, limit: Duration, log: &Path) -> Result<Run, String> {
        let output = File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let started = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env(CHOICE, number.to_string())
            .env("CEASEFIRE_SCHEDULES", "100")
            .env("PROPTEST_CASES", "32")
            .env("RUST_BACKTRACE", "0")
            .current_dir(log.parent().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                let seconds = started.elapsed().as_secs_f64();
                let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
                return Ok(Run { finding: (!status.success()).then(|| finding(&text, status)), seconds });
            }
            if started.elapsed() > limit {
                // It may have ended by itself just now.
                let _ = child.kill();
                child.wait().map_err(|error| error.to_string())?;
                let finding = Some(format!("no end after {:.0} s", limit.as_secs_f64()));
                return Ok(Run { finding, seconds: started.elapsed().as_secs_f64() });
            }
            sleep(Duration::from_millis(4));
        }
    }
}

/// Does the same work on several threads, each of which is told which it is.
pub(crate) fn in_parallel(
    jobs: usize,
    work: impl Fn(usize) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|worker| scope.spawn(move || work(worker))).collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        ended.into_iter().try_for_each(|result| result.map_err(|_| "a worker panicked".to_owned())?)
    })
}

/// Writes down what the next run is to know.
pub(crate) fn keep(file: &Path, what: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_vec(what).map_err(|error| error.to_string())?;
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// What a checker found, from what it printed: an explorer's or a model's sentence, or else the first panic.
fn finding(text: &str, status: ExitStatus) -> String {
    const BROKEN: &str = "the protocol does not hold: ";
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let promise = lines.iter().find(|line| promise(line).is_some());
    let broken = lines.iter().find_map(|line| line.split_once(BROKEN).map(|(_, what)| what));
    let panicked = lines.iter().position(|line| line.contains("panicked at"));
    let after_panic = panicked.and_then(|index| lines.get(index + 1).copied());
    let told = promise.copied().or(broken).or(after_panic).or(lines.first().copied());
    told.map_or_else(|| status.to_string(), |line| line.trim().to_owned())
}

/// The promise that a finding says was violated: D1 to D4, or B.
pub(crate) fn promise(finding: &str) -> Option<&'static str> {
    ["D1", "D2", "D3", "D4", "B"]
        .into_iter()
        .find(|name| finding.trim().strip_prefix(name).is_some_and(|rest| rest.starts_with(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_finding_is_the_sentence_with_the_promise_or_the_first_panic() {
        let failed = ExitStatus::from_raw(101 << 8);
        let model = "running 1 test\nthread 'a' panicked at x.rs:1:\nD1, frame safety: CPU 1 used a freed frame\n\
                     thread 'a' panicked at y.rs:2:\nthe protocol does not hold: D1, frame safety: CPU 1";
        assert_eq!(finding(model, failed), "D1, frame safety: CPU 1 used a freed frame");
        assert_eq!(promise(&finding(model, failed)), Some("D1"));
        let unit = "running 1 test\nthread 'a' panicked at x.rs:1:\nassertion failed: a\nmore";
        assert_eq!(finding(unit, failed), "assertion failed: a");
        assert_eq!(promise("Bees, and others"), None);
        assert_eq!(finding("", ExitStatus::from_raw(11)), "signal: 11 (SIGSEGV)");
    }
}
