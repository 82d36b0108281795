//! Tests that run on the host: style, lints, unit tests, and the models of `coherence` under loom and shuttle.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::tally::{Tally, Verdict};
use crate::{check, project};

/// One program to run.
pub(super) struct Step {
    pub(super) name: &'static str,
    command: fn() -> Command,
    kind: Kind,
    /// A program without which it cannot be made.
    needs: Option<&'static str>,
    /// Left out by `--quick`.
    pub(super) slow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Passes or fails as a whole. Skipped when the toolchain lacks the cargo command it uses.
    Whole,
    /// Rust's test harness: each of its tests counts.
    Harness,
}

/// All steps, the quickest to fail first.
pub(super) const STEPS: [Step; 14] = [
    Step { name: "format", command: format, kind: Kind::Whole, needs: None, slow: false },
    Step { name: "kernel build", command: kernel_build, kind: Kind::Whole, needs: None, slow: false },
    Step { name: "documentation", command: documentation, kind: Kind::Whole, needs: None, slow: false },
    Step { name: "unit tests", command: unit_tests, kind: Kind::Harness, needs: None, slow: false },
    Step {
        name: "page in a browser",
        command: page,
        kind: Kind::Harness,
        needs: Some("chromium"),
        slow: false,
    },
    Step {
        name: "bench",
        command: bench,
        kind: Kind::Harness,
        needs: Some("qemu-system-x86_64"),
        slow: true,
    },
    Step {
        name: "compare",
        command: compare,
        kind: Kind::Harness,
        needs: Some("qemu-system-x86_64"),
        slow: true,
    },
    Step { name: "fuzz regressions", command: fuzz_regressions, kind: Kind::Whole, needs: None, slow: false },
    Step { name: "lints", command: lints, kind: Kind::Whole, needs: None, slow: true },
    Step { name: "kernel lints", command: kernel_lints, kind: Kind::Whole, needs: None, slow: true },
    Step { name: "checkers' lints", command: checkers_lints, kind: Kind::Whole, needs: None, slow: true },
    Step { name: "check", command: quick_check, kind: Kind::Whole, needs: None, slow: false },
    Step { name: "fences", command: fences, kind: Kind::Whole, needs: None, slow: true },
    Step { name: "shuttle models", command: shuttle, kind: Kind::Harness, needs: None, slow: true },
];

fn format() -> Command {
    cargo(&["fmt", "--all", "--", "--check", "--files-with-diff"])
}

fn kernel_build() -> Command {
    let mut command = project::cargo_for_kernel("build");
    command.args(["--release", "--quiet"]);
    command
}

/// What others read to use the library: no link leads nowhere, and nothing public is without a word.
fn documentation() -> Command {
    let mut command = cargo(&["doc", "--locked", "--quiet", "--no-deps", "--package=coherence"]);
    command.args(["--package=explorer"]).env("RUSTDOCFLAGS", "-Dwarnings");
    command
}

fn unit_tests() -> Command {
    cargo(&["test", "--locked", "--quiet", "--no-fail-fast"])
}

fn bench() -> Command {
    with_guests("--test=bench")
}

fn compare() -> Command {
    with_guests("--test=comparison")
}

/// These boot guests, so `unit tests` leaves them out.
fn with_guests(test: &str) -> Command {
    let package = ["test", "--locked", "--quiet", "--package=ceasefire", test];
    cargo(&[&package[..], &["--", "--ignored", "--test-threads=1"]].concat())
}

/// These are ignored without a browser, so `unit tests` leaves them out.
fn page() -> Command {
    cargo(&["test", "--locked", "--quiet", "--package=ceasefire", "--test=page", "--", "--ignored"])
}

fn lints() -> Command {
    cargo(&[
        "clippy",
        "--locked",
        "--quiet",
        "--workspace",
        "--exclude=kernel",
        "--all-targets",
        "--",
        "-Dwarnings",
    ])
}

fn kernel_lints() -> Command {
    let mut command = project::cargo_for_kernel("clippy");
    command.args(["--release", "--quiet", "--", "-Dwarnings"]);
    command
}

fn checkers_lints() -> Command {
    let packages = ["--package=machine", "--package=explorer", "--package=memory", "--package=coherence"];
    let mut command = cargo(&["clippy", "--locked", "--quiet", "--lib", "--bins"]);
    command.args(packages).args(["--", "-Dwarnings"]);
    check::for_checkers(&mut command);
    command
}

/// `./ceasefire check --quick`, loom's models among it.
fn quick_check() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "ceasefire".into()));
    command.args(["check", "--quick"]);
    command
}

/// Each fence of the handshake is left out, by a program: loom's models must name the promise that this breaks.
fn fences() -> Command {
    cargo(&["run", "--locked", "--quiet", "--package=mutation", "--", "--fences"])
}

/// What the fuzzing has found so far, on the machine again.
fn fuzz_regressions() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "ceasefire".into()));
    command
        .args(["fuzz", "--systems", "machine", "--replay"])
        .arg(project::root().join("fuzz/regressions.txt"));
    command
}

fn shuttle() -> Command {
    let mut command = model("shuttle");
    command.arg("--quiet");
    command
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = project::cargo();
    command.args(arguments);
    command
}

/// The models are `coherence` built with a checker in place of the real atomics: another build, so another target folder.
pub(crate) fn model(checker: &str) -> Command {
    let mut command = cargo(&["test", "--locked", "--release", "--package=coherence", "--test", checker]);
    command.env("RUSTFLAGS", format!("--cfg {checker}"));
    command.env("CARGO_TARGET_DIR", project::target_folder().join(checker));
    command
}

/// Runs a step and counts what it says.
pub(super) fn run(step: &Step, tally: &mut Tally) {
    let started = Instant::now();
    if let Some(needed) = step.needs
        && !super::is_installed(needed)
    {
        return tally.record(step.name, super::not_installed(needed), started.elapsed());
    }
    let mut command = (step.command)();
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return tally.record(step.name, Verdict::Failed(error.to_string()), started.elapsed()),
    };
    let (text, messages) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let verdict = if output.status.success() {
        Verdict::Passed
    } else if messages.contains("no such command") || messages.contains("is not installed for the toolchain")
    {
        Verdict::Skipped("this toolchain does not have it".into())
    } else {
        Verdict::Failed(format!("{}\n{}", text.trim_end(), messages.trim_end()).trim().to_owned())
    };
    let counts = harness_counts(&text);
    if step.kind == Kind::Whole || counts == (0, 0) {
        return tally.record(step.name, verdict, started.elapsed());
    }
    let (passed, failed) = counts;
    let broken = matches!(verdict, Verdict::Failed(_));
    eprintln!(
        "{:>8}  {} ({passed} passed, {failed} failed; {:.1} s)",
        if broken { "FAILED" } else { "ok" },
        step.name,
        started.elapsed().as_secs_f64()
    );
    let failures = match verdict {
        // One entry with the whole output, and one for each further test, so that the counts are right.
        Verdict::Failed(why) => {
            let further = (1..failed).map(|_| (step.name.to_owned(), "see above".to_owned()));
            std::iter::once((step.name.to_owned(), why)).chain(further).collect()
        }
        _ => Vec::new(),
    };
    tally.record_many(passed, failures);
}

/// Passed and failed tests in what Rust's test harness printed: one line `test result: ok. 5 passed; 0 failed; …` for each binary.
fn harness_counts(text: &str) -> (usize, usize) {
    let results = text.lines().filter_map(|line| line.trim().strip_prefix("test result: "));
    results.fold((0, 0), |(passed, failed), line| {
        let count = |word: &str| -> usize {
            let before = line.split(word).next().unwrap_or_default();
            before.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        (passed + count(" passed"), failed + count(" failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harnesss_counts_are_added_up() {
        let text = "\ntest result: ok. 5 passed; 0 failed; 1 ignored; 0 measured\nnoise\n\
                    test result: FAILED. 12 passed; 3 failed; 0 ignored";
        assert_eq!(harness_counts(text), (17, 3));
        assert_eq!(harness_counts("error: could not compile"), (0, 0));
    }
}
