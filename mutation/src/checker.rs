//! The checkers that a mutant is shown to, each a process that is told which mutant it is to be.
//!
//! They are what `./ceasefire test` and `./ceasefire check` run, cut into pieces so that the first finding ends the matter: each scenario of the
//! explorer, each of loom's models, each of shuttle's histories (fewer schedules), and each unit test of `coherence` and `memory`.
//! Tests whose schedule is the host's are left out, since what they find today they may miss tomorrow. The others do
//! the same each time, so that a mutant whose place a checker does not come by needs not be shown to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use protocol::mutants::Kind;

use crate::building::{Build, Program};
use crate::tree::{CHOICE, NOTES, NOTING};

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
            _ => {
                for line in listed(program, &["--list", "--format=terse"])? {
                    let Some(test) = line.strip_suffix(": test") else { continue };
                    let last = test.rsplit("::").next().unwrap_or(test);
                    if OF_FAULTS.contains(&last) {
                        continue;
                    }
                    let name = if build.name == "units" {
                        format!("{} {test}", program.target)
                    } else {
                        last.into()
                    };
                    checkers.push(checker(build, &name, program, vec!["--exact".into(), test.into()]));
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

    /// Whether it can tell such a change from the sound code at all. Only loom's memory is as weak as the orderings allow.
    pub(crate) fn sees(&self, kind: Kind) -> bool {
        kind != Kind::Ordering || self.is_of("loom")
    }

    /// Whether it is of that build.
    pub(crate) fn is_of(&self, build: &str) -> bool {
        self.name.split(' ').next() == Some(build)
    }

    /// Shows it a mutant. What it prints goes to `log`.
    pub(crate) fn run(&self, number: usize, limit: Limit, log: &Path) -> Result<Run, String> {
        let mut command = self.command(log)?;
        command.env(CHOICE, number.to_string());
        self.wait(command, limit, log)
    }

    /// Shows it the sound code; `notes` is the file to which it writes which mutants it comes by.
    pub(crate) fn note(&self, limit: Limit, notes: &Path, log: &Path) -> Result<Run, String> {
        let _ = fs::remove_file(notes);
        let mut command = self.command(log)?;
        command.env(CHOICE, NOTING).env(NOTES, notes);
        self.wait(command, limit, log)
    }

    fn command(&self, log: &Path) -> Result<Command, String> {
        let output = File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env("CEASEFIRE_SCHEDULES", "100")
            .env("PROPTEST_CASES", "32")
            .env("PROPTEST_RNG_SEED", "1")
            .env("RUST_BACKTRACE", "0")
            .env("RUST_TEST_THREADS", "1")
            .current_dir(log.parent().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        Ok(command)
    }

    fn wait(&self, mut command: Command, limit: Limit, log: &Path) -> Result<Run, String> {
        let started = Instant::now();
        let mut child =
            command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                let seconds = started.elapsed().as_secs_f64();
                let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
                return Ok(Run { finding: (!status.success()).then(|| finding(&text, status)), seconds });
            }
            if limit.is_over(started.elapsed(), &child) {
                // It may have ended by itself just now.
                let _ = child.kill();
                child.wait().map_err(|error| error.to_string())?;
                let seconds = started.elapsed().as_secs_f64();
                return Ok(Run { finding: Some(format!("no end after {seconds:.0} s")), seconds });
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// When a checker counts as caught in a loop, or as stuck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// So much work of the host's CPUs.
    work: Duration,
    /// So long, for one that waits and does not work. The host may be busy.
    wait: Duration,
}

impl Limit {
    /// The longest that a mutant may take, if the sound code takes so many seconds.
    pub(crate) fn beyond(sound: f64) -> Self {
        Limit {
            work: Duration::from_secs_f64(2.0 + 10.0 * sound),
            wait: Duration::from_secs_f64(15.0 + 30.0 * sound),
        }
    }

    fn is_over(&self, elapsed: Duration, child: &Child) -> bool {
        elapsed > self.wait || elapsed > self.work && worked(child).is_some_and(|worked| worked > self.work)
    }
}

/// How much work a process has done: the 14th and 15th word of its line in `/proc`, in hundredths of a second. The second word is a name
/// in brackets, with whatever in it.
fn worked(child: &Child) -> Option<Duration> {
    let line = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let words: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = words.get(11..13)?.iter().filter_map(|word| word.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * ticks))
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
    fn who_works_is_told_from_who_waits() {
        let mut waiting = Command::new("sleep").arg("10").spawn().unwrap();
        let mut working = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let limit = Limit { work: Duration::from_millis(100), wait: Duration::from_secs(60) };
        while !limit.is_over(Duration::from_secs(1), &working) {
            sleep(Duration::from_millis(10));
        }
        assert!(!limit.is_over(Duration::from_secs(59), &waiting));
        assert!(limit.is_over(Duration::from_secs(61), &waiting));
        for child in [&mut waiting, &mut working] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

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
