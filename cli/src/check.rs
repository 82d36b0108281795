//! `ceasefire check`: explores the schedules of the real `coherence` and `memory` on a simulated machine.
//!
//! What explores is a program of its own (`machine/src/bin/check.rs`), built with `--cfg simulated` into a target folder of its own, so
//! that the places at which the code can be broken on purpose are never in the kernel. This verb builds it, hands over what was
//! asked for, and adds loom's models of `coherence`, which see what x86's memory order hides.

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use crate::command_line::Check;
use crate::failure::Failure;
use crate::project;
use crate::result::ResultFile;
use crate::test::models;

/// The program's name for "that makes no sense" (`Failure::Usage`), after it has said so.
const USAGE: i32 = 2;

/// The checkers' program with these arguments; built first where it must be.
pub(crate) fn program(arguments: &[String]) -> Command {
    let mut command = project::cargo();
    command.args([
        "run",
        "--locked",
        "--quiet",
        "--profile=checkers",
        "--package=machine",
        "--bin=check",
        "--",
    ]);
    command.args(arguments).stdin(Stdio::null());
    for_checkers(&mut command);
    command
}

/// Makes a cargo command one of the checkers' build.
pub(crate) fn for_checkers(command: &mut Command) {
    command.env("RUSTFLAGS", "--cfg simulated");
    command.env("CARGO_TARGET_DIR", project::target_folder().join("simulated"));
}

/// Runs the check. Status 0 when all is as it should be, 1 when something was found that should not be there, or was not found that
/// should be.
pub(crate) fn run(options: &Check) -> Result<ExitCode, Failure> {
    // Refused now, and not after minutes.
    let saved = options.json.as_deref().map(ResultFile::create).transpose()?;
    let scratch = tempfile::tempdir().map_err(|error| Failure::host("make a temporary folder", error))?;
    let json = scratch.path().join("check.json");
    if !project::target_folder().join("simulated/checkers/check").exists() {
        eprintln!("building the checkers, which takes a minute the first time");
    }
    let mut arguments = arguments(options);
    if saved.is_some() {
        arguments.extend(["--json".to_owned(), json.display().to_string()]);
    }
    if let Some(table) = &options.table {
        let place =
            std::path::absolute(table).map_err(|error| Failure::host("find the current folder", error))?;
        arguments.extend(["--table".to_owned(), place.display().to_string()]);
    }
    let status = program(&arguments).status().map_err(|error| Failure::host("start cargo", error))?;
    if status.code() == Some(USAGE) {
        // It has said what is wrong.
        return Ok(ExitCode::from(USAGE as u8));
    }
    let mut is_sound = status.success();
    if options.names.is_empty() && options.replay.is_none() {
        is_sound &= weak_memory()?;
    }
    if let Some(saved) = saved {
        let bytes = fs::read(&json).map_err(|error| Failure::host("read the check's result", error))?;
        saved.write_bytes(&bytes)?;
    }
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn arguments(options: &Check) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    words.extend(options.quick.then(|| "--quick".to_owned()));
    words.extend(options.deep.then(|| "--deep".to_owned()));
    words.extend(["--seed".to_owned(), options.seed.to_string()]);
    words.extend(options.replay.iter().flat_map(|token| ["--replay".to_owned(), token.clone()]));
    words.extend(options.names.iter().cloned());
    words
}

/// loom's models: every weakly ordered execution of `coherence`'s races, and each fault that only weak memory shows.
fn weak_memory() -> Result<bool, Failure> {
    let (passed, failed, text) = models("loom").map_err(|error| Failure::host("start cargo", error))?;
    println!("loom: {passed} models of coherence under weak memory passed, {failed} failed");
    if failed > 0 || passed == 0 {
        eprintln!("{}", text.trim_end());
    }
    Ok(failed == 0 && passed > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_handed_over() {
        let options = Check {
            quick: true,
            deep: false,
            seed: 7,
            replay: Some("munmap-and-reader:3.1".into()),
            json: None,
            table: None,
            names: vec!["munmap".into()],
        };
        let words = ["--quick", "--seed", "7", "--replay", "munmap-and-reader:3.1", "munmap"];
        assert_eq!(arguments(&options), words);
    }
}
