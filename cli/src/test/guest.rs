//! Boots for tests: made ready, run, judged. As many at once as the host has cores.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use super::case::Boot;
use super::disks::Disks;
use super::expectation::{Expectation, Observed, matches};
use super::tally::{Tally, Verdict};
use crate::capture::Captured;
use crate::failure::Failure;
use crate::kernel_image::KernelImage;
use crate::mechanisms;
use crate::order::Order;
use crate::program::{Companion, guest_path};
use crate::project;
use crate::qemu::{Disk, Mode};
use crate::result::System;
use crate::session::Input;
use crate::side::Side;
use crate::size::Memory;
use crate::workload::Workload;

/// Characters of a program's output that a failure shows.
const SHOWN: usize = 2000;

/// Runs all boots: first those that keep one host thread busy, side by side; then the others one by one.
///
/// # Errors
/// A signal failure when we are asked to stop; what was run until then has been counted.
pub(super) fn run_all(boots: &[Boot], kernel: &Arc<KernelImage>, tally: &mut Tally) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (narrow, wide): (Vec<_>, Vec<_>) = boots.iter().partition(|boot| boot.threads() == 1);
    run_some(&narrow, kernel, cores, tally)?;
    run_some(&wide, kernel, 1, tally)
}

fn run_some(
    boots: &[&Boot],
    kernel: &Arc<KernelImage>,
    side_by_side: usize,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let queue = Mutex::new(boots.iter());
    let results = Mutex::new((tally, Ok(())));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next().copied();
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(|| {
                while let Some(boot) = next() {
                    let started = Instant::now();
                    let verdict = run(boot, kernel);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    match verdict {
                        Ok(verdict) => results.0.record(&boot.name(), verdict, started.elapsed()),
                        Err(stopped) => results.1 = Err(stopped),
                    }
                    if results.1.is_err() {
                        return;
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// One boot and its verdict.
///
/// # Errors
/// Only a signal failure: everything else is a verdict.
fn run(boot: &Boot, kernel: &Arc<KernelImage>) -> Result<Verdict, Failure> {
    if let Some(needed) = &boot.case.needs
        && !super::is_installed(needed)
    {
        return Ok(super::not_installed(needed));
    }
    let workload = boot.case.workload.as_deref().and_then(Workload::find);
    if let Some(reason) = workload.and_then(Result::ok).and_then(|workload| workload.missing()) {
        return Ok(Verdict::Skipped(reason));
    }
    if boot.case.program.as_deref().is_some_and(|program| !program.exists()) {
        let program = boot.case.program.as_deref().unwrap_or(Path::new(""));
        return Ok(Verdict::Skipped(format!("{} is not installed", program.display())));
    }
    if boot.case.system == System::Linux
        && let Err(reason) = linux()
    {
        return Ok(Verdict::Skipped(format!("Linux is absent: {reason}")));
    }
    let wanted = boot.case.expectation.filled(|text| boot.fill(text));
    let disks = match Disks::make(&boot.case.disks) {
        Ok(disks) => disks,
        Err(failure) => return Ok(Verdict::Failed(failure.sentence().unwrap_or_default().to_owned())),
    };
    let run = once(boot, &disks, kernel);
    let (output, errors) = (run.output_text(), run.errors_text());
    let mut differences = match (&run.ended, &wanted.failure) {
        (Err(Failure::Signal(signal)), _) => return Err(Failure::Signal(*signal)),
        (Err(failure), Some(pattern)) => failure_differences(failure, pattern, &wanted),
        (Err(failure), None) => vec![failure.sentence().unwrap_or_default().to_owned()],
        (Ok(_), Some(pattern)) => vec![format!("it ended well instead of with '{pattern}'")],
        (Ok(outcome), None) => {
            wanted.differences(&Observed { report: &outcome.report, output: &output, errors: &errors })
        }
    };
    differences.extend(disks.differences());
    if boot.case.repeats_exactly && differences.is_empty() {
        // A sanitized run is repeated without: to be watched must not change it either.
        let again = once(&boot.unwatched(), &disks, kernel);
        if let Err(Failure::Signal(signal)) = again.ended {
            return Err(Failure::Signal(signal));
        }
        differences.extend(changes(&run, &again));
    }
    if differences.is_empty() {
        return Ok(Verdict::Passed);
    }
    let mut why = differences.join("\n");
    for (name, text) in [("standard output", &output), ("standard error", &errors)] {
        if !text.is_empty() {
            why.push_str(&format!("\n{name}:\n{}", end_of(text)));
        }
    }
    Ok(Verdict::Failed(why))
}

fn once(boot: &Boot, disks: &Disks, kernel: &Arc<KernelImage>) -> Captured {
    let prepared = order(boot, disks).and_then(|order| match boot.case.system {
        System::Ceasefire => order.prepare(|| Ok(kernel.clone())),
        System::Linux => linux().as_ref().map_err(Failure::usage)?.prepare(order),
    });
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return Captured::none(failure),
    };
    let input = match prepared.order.packed_input {
        Some(_) => Input::Packed,
        None => Input::Bytes(boot.case.stdin.clone().into_bytes()),
    };
    Captured::run(&prepared, input, Some(boot.time_limit()))
}

/// The peer, or why there is none. Fetched at most once.
fn linux() -> &'static Result<Side, String> {
    static LINUX: LazyLock<Result<Side, String>> = LazyLock::new(|| {
        Side::linux(None).map_err(|failure| failure.sentence().unwrap_or_default().to_owned())
    });
    &LINUX
}

/// What a repetition changed that should have been the same to the last instruction.
fn changes(first: &Captured, again: &Captured) -> Vec<String> {
    let mut found = Vec::new();
    if first.output != again.output || first.errors != again.errors {
        found.push("its repetition printed something else".to_owned());
    }
    match (&first.ended, &again.ended) {
        (Ok(first), Ok(again)) if first.raw_report != again.raw_report => {
            let (before, after) = (first.report.clock, again.report.clock);
            found.push(format!("its repetition reported something else ({before:?}, then {after:?})"));
        }
        (Ok(_), Err(failure)) => {
            found.push(format!("its repetition failed: {}", failure.sentence().unwrap_or_default()));
        }
        _ => {}
    }
    found
}

fn failure_differences(failure: &Failure, pattern: &str, wanted: &Expectation) -> Vec<String> {
    let mut found = Vec::new();
    if !wanted.accepts(failure.status()) {
        found.push(format!("it failed with status {}", failure.status()));
    }
    match matches(pattern, failure.sentence().unwrap_or_default()) {
        Ok(true) => {}
        Ok(false) => {
            let message = failure.sentence().unwrap_or_default();
            found.push(format!("its message has nothing like '{pattern}':\n{}", start_of(message)));
        }
        Err(error) => found.push(error),
    }
    found
}

fn order(boot: &Boot, disks: &Disks) -> Result<Order, Failure> {
    let case = boot.case;
    let (program, place, disk) = match (&case.workload, &case.program) {
        (Some(name), None) => {
            let (program, disk) = build(name)?;
            (program, Path::new("/").join(name), disk)
        }
        (None, Some(path)) => (path.clone(), guest_path(path), None),
        _ => {
            return Err(Failure::usage(format!("{} has not exactly one of workload and program", case.name)));
        }
    };
    let suppress = case.suppress.iter().map(|cause| format!("suppress={cause}"));
    let (with, without) = mechanisms::parse_both(&case.with, &case.without)?;
    Ok(Order {
        program,
        place,
        arguments: case.args.iter().map(|argument| boot.fill(argument).into()).collect(),
        companions: case
            .files
            .iter()
            .map(|file| Companion::parse(project::root().join(file).as_os_str()))
            .collect(),
        environment: Vec::new(),
        packed_input: (matches!(boot.mode, Mode::Deterministic { .. }) || case.system == System::Linux)
            .then(|| case.stdin.clone().into_bytes()),
        board: case.machine,
        cpus: boot.cpus,
        memory: Memory::parse(&case.memory).map_err(Failure::Usage)?,
        mode: boot.mode,
        without,
        with,
        kernel_words: case.kernel.iter().cloned().chain(suppress).collect(),
        disks: disk.into_iter().chain(disks.for_guest()).collect(),
        trace: case.trace,
        linux: None,
        sanitize: boot.sanitize,
    })
}

/// Builds a workload, and makes its disk; one at a time, as several boots may want the same.
fn build(name: &str) -> Result<(PathBuf, Option<Disk>), Failure> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    match Workload::find(name).transpose()? {
        Some(workload) => Ok((workload.build()?, workload.disk()?)),
        None => Err(Failure::usage(format!("there is no workload '{name}'"))),
    }
}

fn start_of(text: &str) -> &str {
    let end = (0..=SHOWN.min(text.len())).rfind(|&index| text.is_char_boundary(index)).unwrap_or(0);
    text[..end].trim_end()
}

fn end_of(text: &str) -> &str {
    let start = text.len().saturating_sub(SHOWN);
    let start = (start..text.len()).find(|&index| text.is_char_boundary(index)).unwrap_or(0);
    text[start..].trim_end()
}
