//! The three systems as one thing: packs of programs go in, traces come out.
//!
//! A guest that ends early (its kernel panicked, a program hung it) has printed the traces of the programs before; the program behind the
//! last whole trace gets the guest's story as its trace, and the guest starts again behind it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fuzz::{Program, Trace};

use crate::capture::Captured;
use crate::check;
use crate::failure::Failure;
use crate::order::Order;
use crate::program::Companion;
use crate::qemu::Mode;
use crate::result::System;
use crate::session::Input;
use crate::side::Side;
use crate::size::Memory;
use crate::workload::Workload;

/// A pack may take so long for each program, beside the guest's start.
const LIMIT_FOR_A_PROGRAM: Duration = Duration::from_millis(1500);
const LIMIT_FOR_THE_START: Duration = Duration::from_secs(120);
/// A pack is given up after so many guests that ended early.
const MOST_STARTS: usize = 8;

/// Traces by program's name; a program may have several.
pub(crate) type Traces = HashMap<String, Vec<Trace>>;

/// One system.
pub(crate) enum Executor {
    /// `memory` on simulated CPUs: the checkers' program.
    Machine,
    /// A kernel in a guest.
    Guest(Side),
}

/// Those that were asked for.
pub(crate) struct Systems {
    pub(crate) executors: Vec<Executor>,
    /// The guests' program.
    pub(crate) interpreter: PathBuf,
}

/// What a run cost beside its traces.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) traces: Traces,
    /// Guests that were started.
    pub(crate) boots: u64,
    /// Schedules that the machine explored.
    pub(crate) schedules: u64,
}

impl Executor {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Executor::Machine => "machine",
            Executor::Guest(side) if side.system == System::Linux => "linux",
            Executor::Guest(_) => "ceasefire",
        }
    }

    /// Runs programs, each once in a guest, under many schedules on the machine.
    ///
    /// # Errors
    /// A signal failure when we are asked to stop; a host failure when nothing can be run.
    pub(crate) fn run(
        &self,
        interpreter: &Path,
        programs: &[Program],
        cpus: u32,
        seed: u64,
    ) -> Result<Run, Failure> {
        match self {
            Executor::Machine => run_on_machine(programs, seed),
            Executor::Guest(side) => run_in_guests(side, interpreter, programs, cpus),
        }
    }
}

impl Systems {
    /// The systems of these names.
    ///
    /// # Errors
    /// A usage failure for a name that is none; a host failure when Linux cannot be had.
    pub(crate) fn open(names: &[String]) -> Result<Self, Failure> {
        let mut executors = Vec::new();
        for name in names {
            executors.push(match name.as_str() {
                "machine" => Executor::Machine,
                "ceasefire" => Executor::Guest(Side::ceasefire(None)),
                "linux" => Executor::Guest(Side::linux(None)?),
                other => {
                    return Err(Failure::usage(format!(
                        "there is no system '{other}': machine, ceasefire, linux"
                    )));
                }
            });
        }
        let mut interpreter = PathBuf::new();
        for executor in &executors {
            if let Executor::Guest(side) = executor {
                side.make_ready()?;
                let workload = Workload::find("fuzz").transpose()?;
                interpreter =
                    workload.ok_or_else(|| Failure::usage("there is no workload 'fuzz'"))?.build()?;
            }
        }
        Ok(Systems { executors, interpreter })
    }

    /// Which ones, and which Linux.
    pub(crate) fn names(&self) -> Vec<String> {
        let linux = |side: &Side| side.linux.as_ref().map(|linux| format!("linux ({})", linux.name));
        let name = |executor: &Executor| match executor {
            Executor::Guest(side) => linux(side).unwrap_or_else(|| executor.name().into()),
            Executor::Machine => executor.name().into(),
        };
        self.executors.iter().map(name).collect()
    }

    /// Runs programs on all of them, side by side; in their order.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub(crate) fn run(&self, programs: &[Program], cpus: u32, seed: u64) -> Result<Vec<Run>, Failure> {
        std::thread::scope(|scope| {
            let all: Vec<_> = self
                .executors
                .iter()
                .map(|executor| scope.spawn(move || executor.run(&self.interpreter, programs, cpus, seed)))
                .collect();
            all.into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(Failure::host("run a system", "it panicked")))
                })
                .collect()
        })
    }
}

fn by_name(traces: Vec<Trace>) -> Traces {
    let mut all = Traces::new();
    for trace in traces {
        all.entry(trace.program.clone()).or_default().push(trace);
    }
    all
}

fn run_in_guests(side: &Side, interpreter: &Path, programs: &[Program], cpus: u32) -> Result<Run, Failure> {
    let mut run = Run::default();
    let mut rest = programs;
    while !rest.is_empty() {
        if run.boots as usize == MOST_STARTS {
            return Err(Failure::host(
                format!("run a pack of {} programs", programs.len()),
                "every guest ended early",
            ));
        }
        run.boots += 1;
        let captured = boot(side, interpreter, rest, cpus)?;
        let output = captured.output_text();
        let traces = fuzz::read(&output);
        let done = traces.len();
        for (name, traces) in by_name(traces) {
            run.traces.entry(name).or_default().extend(traces);
        }
        if let Err(Failure::Signal(signal)) = captured.ended {
            return Err(Failure::Signal(signal));
        }
        if output.lines().last() == Some("all") {
            break;
        }
        let story = match &captured.ended {
            Err(failure) => failure.sentence().unwrap_or_default().to_owned(),
            Ok(_) => format!("the guest ended early: {}", captured.errors_text().trim()),
        };
        let Some(culprit) = rest.get(done) else { break };
        let trace = Trace { program: culprit.name.clone(), found: Some(story), ..Trace::default() };
        run.traces.entry(culprit.name.clone()).or_default().push(trace);
        rest = &rest[done + 1..];
    }
    Ok(run)
}

fn boot(side: &Side, interpreter: &Path, programs: &[Program], cpus: u32) -> Result<Captured, Failure> {
    let pack =
        tempfile::NamedTempFile::new().map_err(|error| Failure::host("make a temporary file", error))?;
    fs::write(pack.path(), fuzz::pack(programs)).map_err(|error| Failure::host("write a pack", error))?;
    let place = PathBuf::from("/fuzz");
    let order = Order {
        companions: vec![Companion { host: pack.path().into(), guest: Path::new("/pack").into() }],
        packed_input: Some(Vec::new()),
        cpus,
        memory: Memory { mebibytes: 256 },
        // Actors hand rounds to each other all the time: on one host thread that does not wait for the host.
        mode: Mode::Single,
        ..Order::plain(interpreter.into(), place)
    };
    let prepared = side.prepare(order)?;
    let limit = LIMIT_FOR_THE_START + LIMIT_FOR_A_PROGRAM * programs.len() as u32;
    Ok(Captured::run(&prepared, Input::Packed, Some(limit)))
}

fn run_on_machine(programs: &[Program], seed: u64) -> Result<Run, Failure> {
    let pack =
        tempfile::NamedTempFile::new().map_err(|error| Failure::host("make a temporary file", error))?;
    fs::write(pack.path(), fuzz::pack(programs)).map_err(|error| Failure::host("write a pack", error))?;
    let words =
        ["--pack".to_owned(), pack.path().display().to_string(), "--seed".to_owned(), seed.to_string()];
    let mut command = check::program("fuzz", &words);
    let output =
        command.stderr(Stdio::piped()).output().map_err(|error| Failure::host("start cargo", error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let complaints = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::host("run the machine", complaints.trim()));
    }
    let count = |line: &str| line.strip_prefix("schedules ")?.parse::<u64>().ok();
    let schedules = text.lines().filter_map(count).sum();
    Ok(Run { traces: by_name(fuzz::read(&text)), boots: 0, schedules })
}
