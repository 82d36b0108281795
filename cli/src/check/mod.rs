//! `ceasefire check`: runs the checkers, and says of each whether all is as it should be.
//!
//! What is checked falls into parts (`part.rs` has the list and says how one is added). Each part has a file here, which starts the
//! part's program, takes over what that found out, and can join and present such results. They are collected in one document
//! (`document.rs`), which is all that the summary and the documents' tables are made from: so what was run in several shards, on
//! several machines, is joined (`merging.rs`) and presented as if it had been one run.

mod calibration;
mod document;
mod explored;
mod fuzzing;
mod handover;
mod merging;
mod mutants;
mod part;
mod shard;
mod summary;
mod weak_memory;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::command_line::Check;
use crate::failure::Failure;
use crate::project;
use crate::result::ResultFile;
use document::{Document, Level};
use part::{Asked, PARTS, Part};

pub(crate) use shard::Shard;

/// Which of `machine`'s programs explores.
const EXPLORER: &str = "check";

/// A checkers' program with these arguments; built first where it must be.
pub(crate) fn program(name: &str, arguments: &[String]) -> Command {
    let mut command = project::cargo();
    command.args(["run", "--locked", "--quiet", "--profile=checkers", "--package=machine"]);
    command.args([&format!("--bin={name}"), "--"]).args(arguments).stdin(Stdio::null());
    for_checkers(&mut command);
    command
}

/// Makes a cargo command one of the checkers' build: its own target folder, so that the places at which the code can be broken on
/// purpose are never in the kernel.
pub(crate) fn for_checkers(command: &mut Command) {
    command.env("RUSTFLAGS", "--cfg simulated");
    command.env("CARGO_TARGET_DIR", project::target_folder().join("simulated"));
}

/// The names that `--part` takes.
pub(crate) fn part_names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.name())
}

/// Runs the check. Status 0 when all is as it should be, 1 when something was found that should not be there, or was not found that
/// should be.
pub(crate) fn run(options: &Check) -> Result<ExitCode, Failure> {
    if let Some(token) = &options.replay {
        return replay(token);
    }
    let (json, table) = (options.json.as_deref(), options.table.as_deref());
    if json.is_some() && json == table {
        return Err(Failure::usage("--json and --table name the same file"));
    }
    // Refused now, and not after minutes. What is left beside the file until then would stay there if somebody lost patience.
    json.iter().chain(&table).try_for_each(|path| ResultFile::create(path).map(drop))?;
    let document =
        if options.merge.is_empty() { check(options)? } else { merging::merge_files(&options.merge)? };
    println!("\n{}", summary::table(&document));
    if let Some(path) = json {
        ResultFile::create(path)?.write_form(&document)?;
    }
    if let Some(path) = table {
        ResultFile::create(path)?.write_bytes(summary::page(&document).as_bytes())?;
    }
    Ok(if summary::is_sound(&document) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the parts that are asked for, one after the other; each uses all threads that it may.
fn check(options: &Check) -> Result<Document, Failure> {
    let level = Level::of(options.quick, options.deep);
    let parts = chosen(options, level)?;
    let asked = Asked {
        level,
        names: options.names.clone(),
        seed: options.seed,
        shard: options.shard,
        jobs: options
            .jobs
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u32)),
    };
    let started = Instant::now();
    let mut document = Document::new(&asked, parts.iter().map(|part| part.name()));
    for part in parts {
        if asked.shard.is_none_or(|shard| part.is_sharded() || shard.index == 1) {
            println!();
            part.run(&asked, &mut document)?;
        }
    }
    document.seconds = started.elapsed().as_secs_f64();
    Ok(document)
}

fn chosen(options: &Check, level: Level) -> Result<Vec<&'static dyn Part>, Failure> {
    let has_names = !options.names.is_empty();
    let is_chosen = |part: &&dyn Part| match options.part.as_slice() {
        [] => part.is_run_by(level) && (part.is_meant_by_names() || !has_names),
        parts => parts.iter().any(|name| name == part.name()),
    };
    let parts: Vec<_> = PARTS.iter().copied().filter(is_chosen).collect();
    match parts.iter().find(|part| has_names && !part.takes_names()) {
        Some(part) => Err(Failure::usage(format!(
            "'{}' names scenarios and past bugs, of which the part {} has none",
            options.names.join("' and '"),
            part.name()
        ))),
        None => Ok(parts),
    }
}

/// Shows one schedule, step by step.
fn replay(token: &str) -> Result<ExitCode, Failure> {
    let status = start(program(EXPLORER, &["--replay".to_owned(), token.to_owned()]))?;
    Ok(if status { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a part's program and waits for it: whether it ended with status 0. With status 1 it has found something.
fn start(mut command: Command) -> Result<bool, Failure> {
    if !project::target_folder().join("simulated/checkers").join(EXPLORER).exists() {
        eprintln!("building the checkers, which takes a minute the first time");
    }
    let status = command.status().map_err(|error| Failure::host("start cargo", error))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        // It has said what is wrong.
        Some(2) => Err(Failure::Told(2)),
        _ => Err(Failure::host("finish the check", status)),
    }
}

/// The file of that name as a result of `--json`.
fn read(path: &Path) -> Result<Document, Failure> {
    crate::result::read_form(path, document::SCHEMA)
}
