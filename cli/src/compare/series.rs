//! The runs of a comparison, made one after the other.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::ablation::{self, Ablation, Case};
use super::comparison::Comparison;
use super::progress::Progress;
use super::trial::Trial;
use crate::capture::Captured;
use crate::command_line::Compare;
use crate::failure::Failure;
use crate::mechanisms;
use crate::order::{Order, Prepared};
use crate::qemu::{Access, Mode};
use crate::result::{self, LinuxVersion, Run, System};
use crate::run;
use crate::session::Input;
use crate::side::Side;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Plan {
    /// Our side's order; Linux's is the same without what only we have.
    order: Order,
    runs: u32,
    explain: bool,
    quiet: bool,
    limit: Option<Duration>,
    /// What the user typed.
    name: String,
}

impl Plan {
    /// What the command line asks for.
    ///
    /// # Errors
    /// A usage failure about flags or the program's name; a host failure when a workload does not build or standard input cannot
    /// be read.
    pub(super) fn of(options: &Compare) -> Result<Self, Failure> {
        let mode = run::mode_or(&options.guest, Mode::Single)?;
        let mut order = run::order_for(&options.guest, &options.program, mode)?;
        for disk in order.disks.iter_mut().filter(|disk| disk.access == Access::Writable) {
            // Else each run would find what those before it have left.
            disk.access = Access::Forgetful;
        }
        order.packed_input = Some(run::whole_input()?);
        Ok(Plan {
            order,
            runs: options.runs,
            explain: options.explain,
            quiet: options.quiet,
            limit: options.guest.timeout.0,
            name: options.program[0].display().to_string(),
        })
    }

    /// The same program in the same machine, as Linux can carry it out; with the sentence that says what had to differ.
    fn on_linux(&self) -> (Order, Option<String>) {
        let mut order = self.order.clone();
        (order.without, order.with, order.kernel_words) = Default::default();
        let impossible = matches!(order.mode, Mode::Deterministic { .. }) && order.cpus > 1;
        if impossible {
            order.mode = Mode::Single;
        }
        let note = "Linux does not start on the instruction clock with more than one CPU, so it runs in single mode: compare \
                    the counts; the times cannot be compared.";
        (order, impossible.then(|| note.to_owned()))
    }

    /// "mprotect-flip on 4 CPUs with 512 MiB, without lazy".
    fn title(&self) -> String {
        let order = &self.order;
        let plural = if order.cpus == 1 { "CPU" } else { "CPUs" };
        let changed = mechanisms::changed(&order.with, &order.without).replacen(',', ", Ceasefire", 1);
        format!("{} on {} {plural} with {} MiB{changed}", self.name, order.cpus, order.memory.mebibytes)
    }
}

/// Linux, or why it is absent.
enum Linux {
    Here { side: Side, prepared: Box<Prepared> },
    Absent { failure: Failure, version: Option<LinuxVersion> },
}

/// The runs as they are made.
pub(super) struct Series {
    plan: Plan,
    side: Side,
    prepared: Prepared,
    linux: Linux,
    ours: Vec<Trial>,
    theirs: Vec<Trial>,
    traced: Option<Trial>,
    ablation: Option<Ablation>,
    notes: Vec<String>,
    progress: Progress,
    /// The number of the next run.
    next: u32,
}

impl Series {
    /// Makes both sides ready.
    ///
    /// # Errors
    /// What is wrong with the request or with our side; a Linux that cannot be had is only absent.
    pub(super) fn new(plan: Plan, options: &Compare) -> Result<Self, Failure> {
        // Before our kernel is built, which takes its time.
        let given = options.linux.as_deref().map(|path| Side::linux(Some(path))).transpose()?;
        let side = Side::ceasefire(options.guest.kernel_image.as_deref());
        let prepared = side.prepare(plan.order.clone())?;
        let (order, note) = plan.on_linux();
        let watched = plan.order.sanitize.then(|| {
            "The sanitizer watches the runs on Ceasefire, and found nothing in those that ended well. It makes them slower: compare \
             the counts; the times cannot be compared."
                .to_owned()
        });
        let linux = match given.map_or_else(|| Side::linux(None), Ok) {
            Ok(side) => match side.prepare(order) {
                Ok(prepared) => Linux::Here { prepared: Box::new(prepared), side },
                Err(failure @ Failure::Host(_)) => Linux::Absent { failure, version: None },
                Err(failure) => return Err(failure),
            },
            Err(failure @ Failure::Host(_)) => Linux::Absent { failure, version: None },
            Err(failure) => return Err(failure),
        };
        let sides = if matches!(linux, Linux::Here { .. }) { 2 } else { 1 };
        let ablated =
            if plan.explain { ablation::cases(&plan.order.with, &plan.order.without).len() } else { 0 };
        let runs = plan.runs * sides + (sides - 1) + ablated as u32;
        let progress = Progress::of(runs, plan.quiet);
        Ok(Series {
            plan,
            side,
            prepared,
            linux,
            ours: Vec::new(),
            theirs: Vec::new(),
            traced: None,
            ablation: None,
            notes: note.into_iter().chain(watched).collect(),
            progress,
            next: 0,
        })
    }

    /// Makes all runs.
    ///
    /// # Errors
    /// Why our side could not go on, or the signal that stopped us. What was measured until then is kept.
    pub(super) fn measure(&mut self) -> Result<(), Failure> {
        for pair in 0..self.plan.runs {
            self.ours_once(pair)?;
            self.linux_once(pair)?;
        }
        self.trace_linux()?;
        if self.plan.explain {
            self.ablate()?;
        }
        self.progress.clear();
        Ok(())
    }

    fn ours_once(&mut self, pair: u32) -> Result<(), Failure> {
        self.progress.next("on Ceasefire");
        let captured = self.plan.attempt(&self.prepared);
        self.progress.clear();
        if pair == 0 {
            show(&captured.kept)?;
        }
        let trial =
            captured.into_trial(self.number(), System::Ceasefire, Some(pair), &self.prepared.order)?;
        self.ours.push(trial);
        Ok(())
    }

    fn linux_once(&mut self, pair: u32) -> Result<(), Failure> {
        let Linux::Here { prepared, side } = &self.linux else { return Ok(()) };
        self.progress.next("on Linux");
        let attempt = self.plan.attempt(prepared);
        self.progress.clear();
        match attempt.into_trial(self.next, System::Linux, Some(pair), &prepared.order) {
            Ok(trial) => self.theirs.push(trial),
            Err(failure @ Failure::Signal(_)) => return Err(failure),
            Err(failure) => self.linux = Linux::Absent { failure, version: side.linux.clone() },
        }
        self.next += 1;
        Ok(())
    }

    /// Linux once more, counting flushes by reason.
    fn trace_linux(&mut self) -> Result<(), Failure> {
        let Linux::Here { side, .. } = &self.linux else { return Ok(()) };
        self.progress.next("on Linux, counting flushes by reason");
        let prepared = side.prepare(Order { trace: true, ..self.plan.on_linux().0 })?;
        let attempt = self.plan.attempt(&prepared);
        match attempt.into_trial(self.number(), System::Linux, None, &prepared.order) {
            Ok(trial) => self.traced = Some(trial),
            Err(failure @ Failure::Signal(_)) => return Err(failure),
            Err(failure) => {
                self.notes.push(format!("Linux's flushes could not be counted: {}.", headline(&failure)));
            }
        }
        Ok(())
    }

    /// Our side once more for each mechanism, on the instruction clock.
    fn ablate(&mut self) -> Result<(), Failure> {
        let seed = match self.plan.order.mode {
            Mode::Deterministic { seed } => seed,
            _ => None,
        };
        for off in ablation::cases(&self.plan.order.with, &self.plan.order.without) {
            let what = if off.is_empty() { "nothing".into() } else { off.join(", ") };
            self.progress.next(&format!("on Ceasefire, {what} switched off"));
            let without = [&self.plan.order.without[..], &off].concat();
            let with = self.plan.order.with.iter().copied().filter(|name| !off.contains(name)).collect();
            let mode = Mode::Deterministic { seed };
            let order = Order { mode, without, with, ..self.plan.order.clone() };
            let prepared = self.side.prepare(order)?;
            let attempt = self.plan.attempt(&prepared);
            let trial = match attempt.into_trial(self.number(), System::Ceasefire, None, &prepared.order) {
                Err(failure @ Failure::Signal(_)) => return Err(failure),
                ended => ended.map_err(|failure| headline(&failure)),
            };
            let ablation = self.ablation.get_or_insert_with(|| Ablation { cases: Vec::new() });
            ablation.cases.push(Case { off, trial });
        }
        Ok(())
    }

    /// The number of a new run.
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// The status to end with when Linux is absent.
    pub(super) fn status_of_absence(&self) -> Option<u8> {
        match &self.linux {
            Linux::Here { .. } => None,
            Linux::Absent { failure, .. } => Some(failure.status()),
        }
    }

    /// What has been measured.
    pub(super) fn into_comparison(self, stopped: Option<&Failure>) -> Comparison {
        self.progress.clear();
        let (version, absent) = match self.linux {
            Linux::Here { side, .. } => (side.linux, None),
            Linux::Absent { version, failure } => (version, Some(headline(&failure))),
        };
        let incomplete = stopped.map(|failure| match failure {
            Failure::Signal(_) => "it was interrupted".to_owned(),
            other => headline(other),
        });
        Comparison {
            title: self.plan.title(),
            program: self.plan.order.place.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            ours: self.ours,
            linux: self.theirs,
            version,
            absent,
            traced: self.traced,
            ablation: self.ablation,
            sanitized: self.plan.order.sanitize,
            notes: self.notes,
            incomplete,
        }
    }
}

/// A run that may have failed, and what it printed all the same.
struct Attempt {
    kept: Captured,
    load: Option<f64>,
    timed_out: bool,
}

impl Plan {
    fn attempt(&self, prepared: &Prepared) -> Attempt {
        let load = result::load();
        let started = Instant::now();
        let kept = Captured::run(prepared, Input::Packed, self.limit);
        Attempt { kept, load, timed_out: self.limit.is_some_and(|limit| started.elapsed() >= limit) }
    }
}

impl Attempt {
    /// The run, if it came to its end.
    ///
    /// # Errors
    /// Why it did not, and on which side: for a program that takes too long one sentence, else with all that is known of it.
    fn into_trial(self, id: u32, system: System, pair: Option<u32>, order: &Order) -> Result<Trial, Failure> {
        let Captured { ended, output, errors } = self.kept;
        let outcome = ended.map_err(|failure| match failure {
            Failure::Guest(_) if self.timed_out => {
                Failure::Guest(format!("on {system} {}", headline(&failure)))
            }
            Failure::Guest(story) => Failure::Guest(format!("on {system} {story}")),
            Failure::Host(story) => Failure::Host(format!("on {system}: {story}")),
            other => other,
        })?;
        let run = Run { pair, ..Run::of(id, system, order, &outcome, self.load) };
        Ok(Trial { run, report: outcome.report, output, errors })
    }
}

/// The program's own output, where it would have gone.
///
/// # Errors
/// As a run whose output nobody reads.
fn show(captured: &Captured) -> Result<(), Failure> {
    let write = || {
        io::stdout().write_all(&captured.output)?;
        io::stdout().flush()?;
        io::stderr().write_all(&captured.errors)
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Signal(signal_hook::consts::SIGPIPE),
        _ => Failure::host("write the program's output", error),
    })
}

/// The first line of what is to be said, without its full stop.
fn headline(failure: &Failure) -> String {
    let sentence = failure.sentence().unwrap_or("it was interrupted");
    sentence.lines().next().unwrap_or(sentence).trim_end_matches('.').to_owned()
}
