//! `ceasefire bench`: all workloads on both kernels, and on ours once more without the mechanism concerned.
//!
//! `selection` says what is measured, `plan` in which order, `pace` how long it takes; `measuring` makes the runs, `records` sums
//! them up, `table`, `verdicts` and `sources` show them. `interruption` and `progress` look after the person who waits.

mod interruption;
mod measuring;
mod outputs;
mod pace;
mod plan;
mod progress;
mod records;
mod selection;
mod sources;
mod table;
mod verdicts;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::capture::Captured;
use crate::command_line;
use crate::failure::Failure;
use crate::order::Order;
use crate::qemu::Disk;
use crate::result::{Absent, Document, Mode, System};
use crate::session::Input;
use crate::side::Side;
use crate::workload::Workload;
use interruption::Interruption;
use measuring::{Gathered, Measuring};
use outputs::Outputs;
use plan::{Phase, Step, Subject};
use progress::Progress;
use selection::Chosen;

pub(crate) use progress::clock;
pub(crate) use selection::CpuList;
pub(crate) use sources::promises;

/// What a Linux kernel must run to be one.
const SMALLEST: &str = "dontneed-hop";
/// A kernel starts within a few seconds, ten times as long on a busy host.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A workload that can be run.
struct Job {
    chosen: Chosen,
    program: PathBuf,
    disk: Option<Disk>,
}

impl Job {
    /// Builds the program and makes its disk.
    ///
    /// # Errors
    /// A host failure when that fails.
    fn new(chosen: Chosen) -> Result<Self, Failure> {
        let program = chosen.workload.build()?;
        let disk = chosen.workload.disk()?;
        Ok(Job { chosen, program, disk })
    }
}

/// Measures, shows, saves. Status 0 when nothing failed, 1 when a workload failed, 128 + signal when interrupted.
///
/// # Errors
/// Usage failures before anything runs; a guest failure when the Linux kernel that was given does not start; a host failure when
/// this machine lacks something that our side needs.
pub(crate) fn run(options: &command_line::Bench) -> Result<ExitCode, Failure> {
    let chosen = selection::choose(&options.names, options.quick, options.cpus.as_ref())?;
    let outputs = Outputs::create(&options.json, &options.html)?;
    let interruption = Interruption::listen()?;
    let mut absent = Vec::new();
    let linux = match Side::linux(options.linux.as_deref()) {
        Ok(linux) => Some(linux),
        Err(failure) if options.linux.is_none() => {
            interruption.check()?;
            absent.push(whole_side(System::Linux, failure));
            None
        }
        Err(failure) => return Err(failure),
    };
    let ours = Side::ceasefire(None);
    let descriptions = chosen.iter().map(|chosen| chosen.workload.description()).collect();
    let jobs = prepare(chosen, linux.is_some(), &mut absent);
    interruption.check()?;
    // A compiler that the same signal ended is no failure of this machine.
    let ready = ours.make_ready();
    interruption.check()?;
    ready?;

    let mut document = Document::new(Vec::new(), Vec::new());
    document.workloads = descriptions;
    document.versions.linux = linux.as_ref().and_then(|side| side.linux.clone());
    document.absent = absent;
    if let (Some(linux), true) = (&linux, options.linux.is_some()) {
        starts(linux)?;
    }
    let signal = measure(&jobs, &ours, linux.as_ref(), options, &interruption, &mut document);
    if document.runs.is_empty() && signal.is_some() {
        eprintln!("ceasefire: nothing had been measured yet, so nothing was written");
    } else {
        // A closed terminal is no reason to lose the files.
        let _ = io::stdout().write_all(format!("\n{}", table::render(&document, None)).as_bytes());
        let places = outputs.write(&document)?;
        let _ = writeln!(io::stdout(), "\n{places}");
    }
    if let Some(signal) = signal {
        return Err(Failure::Signal(signal));
    }
    let failed = document.absent.iter().any(|absent| absent.failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Builds the workloads and their disks; what cannot run is noted.
fn prepare(chosen: Vec<Chosen>, linux_is_there: bool, absent: &mut Vec<Absent>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for chosen in chosen {
        let name = chosen.workload.name.clone();
        let because = |system, reason: String, failed| Absent {
            workload: Some(name.clone()),
            case: None,
            system,
            cpus: None,
            reason,
            failed,
        };
        let sides =
            if linux_is_there { &[System::Ceasefire, System::Linux][..] } else { &[System::Ceasefire] };
        if chosen.cpus.is_empty() {
            let least = chosen.bench.cpus.iter().min().copied().unwrap_or(1);
            let reason = format!("it needs at least {least} CPUs");
            absent.extend(sides.iter().map(|side| because(*side, reason.clone(), false)));
            continue;
        }
        if let Some(reason) = chosen.workload.missing() {
            absent.extend(sides.iter().map(|side| because(*side, reason.clone(), false)));
            continue;
        }
        match Job::new(chosen) {
            Ok(job) => jobs.push(job),
            Err(failure) => {
                let reason = failure.sentence().unwrap_or_default().to_owned();
                absent.extend(sides.iter().map(|side| because(*side, reason.clone(), true)));
            }
        }
    }
    jobs
}

/// Proves that a kernel that somebody gave us starts, before many failures do.
///
/// # Errors
/// A guest or host failure of one sentence when it does not.
fn starts(linux: &Side) -> Result<(), Failure> {
    let name = linux.linux.as_ref().map_or("", |version| &version.name);
    let workload = Workload::find(SMALLEST).unwrap_or_else(|| {
        Err(Failure::host(format!("find workloads/{SMALLEST}"), "it is not in this tree"))
    })?;
    let order = Order {
        arguments: vec!["--iterations".into(), "1".into()],
        ..Order::plain(workload.build()?, PathBuf::from("/").join(SMALLEST))
    };
    let ended = Captured::run(&linux.prepare(order)?, Input::Bytes(Vec::new()), Some(START_LIMIT)).ended;
    let sentence = |story: String| {
        let why = story.lines().next().unwrap_or_default().to_owned();
        format!("{name} does not start as a Linux kernel: {why}")
    };
    match ended {
        Ok(_) => Ok(()),
        Err(Failure::Guest(story)) => Err(Failure::Guest(sentence(story))),
        Err(Failure::Host(story)) => Err(Failure::Host(sentence(story))),
        Err(other) => Err(other),
    }
}

/// Makes the runs and puts what they gave into the document. Says which signal ended it early, if one did.
fn measure(
    jobs: &[Job],
    ours: &Side,
    linux: Option<&Side>,
    options: &command_line::Bench,
    interruption: &Interruption,
    document: &mut Document,
) -> Option<i32> {
    let quick = options.quick;
    let pairs = options.pairs.unwrap_or(plan::usual_pairs(quick));
    let phases = plan::phases(&subjects(jobs, linux.is_some()), quick, pairs);
    let names: Vec<String> = jobs.iter().map(|job| job.chosen.workload.name.clone()).collect();
    let runs = phases.iter().flat_map(|phase| &phase.groups).map(Vec::len).sum();
    announce(&phases, &names, linux, quick);
    let progress = Progress::new(runs);
    let measuring = Measuring {
        ours,
        linux,
        order: &|step| order(&jobs[step.subject], step, quick),
        names: &names,
        interruption,
        progress: &progress,
        budget: if quick { pace::QUICK_BUDGET } else { pace::BUDGET },
        started: Instant::now(),
    };
    let gathered = measuring.all(&phases);
    progress.end();
    let signal = interruption.signal();
    if signal.is_some() {
        let made = gathered.made.len();
        document.incomplete = Some(format!("interrupted after {made} of {runs} runs"));
    }
    document.records = records::of(&names, &gathered.made);
    document.notes = notes(&gathered, &names, measuring.started, quick);
    document.absent.extend(gathered.absent);
    document.runs = gathered.made.into_iter().map(|made| made.run).collect();
    signal
}

fn subjects(jobs: &[Job], on_linux: bool) -> Vec<Subject> {
    let subject = |job: &Job| {
        Some(Subject {
            cpus: job.chosen.cpus.clone(),
            base: job.chosen.base()?,
            without: job.chosen.without.clone(),
            on_linux,
            on_one_cpu: job.chosen.runs_on_one_cpu(),
        })
    };
    jobs.iter().filter_map(subject).collect()
}

/// The same program, files, CPUs, memory and board for both sides.
fn order(job: &Job, step: &Step, quick: bool) -> Order {
    let bench = &job.chosen.bench;
    let arguments = bench.quick_args.as_ref().filter(|_| quick).unwrap_or(&bench.args);
    let fill = |text: &String| {
        text.replace("{cpus}", &step.cpus.to_string()).replace("{others}", &(step.cpus - 1).to_string())
    };
    Order {
        arguments: arguments.iter().map(|text| fill(text).into()).collect(),
        packed_input: (step.mode == Mode::Deterministic).then(Vec::new),
        cpus: step.cpus,
        memory: bench.memory,
        mode: step.emulator_mode(),
        without: step.without.clone(),
        disks: job.disk.iter().cloned().collect(),
        ..Order::plain(job.program.clone(), PathBuf::from("/").join(&job.chosen.workload.name))
    }
}

/// What is going to happen, before the first run.
fn announce(phases: &[Phase], names: &[String], linux: Option<&Side>, quick: bool) {
    let steps = phases.iter().flat_map(|phase| phase.groups.iter().flatten());
    let budget = if quick { pace::QUICK_BUDGET } else { pace::BUDGET };
    let left = pace::Pace::default().estimate_all(steps).min(budget);
    let beside = match linux.and_then(|side| side.linux.as_ref()) {
        Some(linux) => format!("on Ceasefire and on {}", linux.name),
        None => "on Ceasefire only".into(),
    };
    let plural = if names.len() == 1 { "workload" } else { "workloads" };
    eprintln!(
        "ceasefire: measuring {} {plural} {beside}, about {} min; Ctrl-C ends it and keeps what was measured",
        names.len(),
        clock(left)
    );
}

/// How long it took, and what was left out for lack of time.
fn notes(gathered: &Gathered, names: &[String], started: Instant, quick: bool) -> Vec<String> {
    let took = clock(started.elapsed());
    let mut notes = vec![format!("Measured in {took} min{}.", if quick { " with --quick" } else { "" })];
    for (what, subjects) in &gathered.left_out {
        let names: Vec<_> = subjects.iter().map(|subject| names[*subject].as_str()).collect();
        notes.push(format!("Left out to end in time: {what} of {}.", names.join(", ")));
    }
    let loads = gathered.made.iter().filter(|made| made.run.pair.is_some()).filter_map(|made| made.run.load);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let busy = crate::statistics::Spread::of(loads).filter(|load| load.median > cores);
    notes.extend(busy.map(|load| {
        format!(
            "The host was busy (load {:.1} on {cores} cores while times were taken): doubt the times, not the counts.",
            load.median
        )
    }));
    notes
}

fn whole_side(system: System, failure: Failure) -> Absent {
    let reason = failure.sentence().unwrap_or_default().to_owned();
    Absent { workload: None, case: None, system, cpus: None, reason, failed: false }
}
