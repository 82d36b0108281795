//! Making the planned runs: each prepared, run, and judged; what came of it gathered.
//!
//! Runs of phases that depend on no host go side by side, all others alone: no time is taken while another guest of ours runs. A
//! workload that fails on a side is not tried again there. Groups that are not essential are left out when the time that is left
//! does not suffice for them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::report::Exit;

use super::interruption::Interruption;
use super::pace::Pace;
use super::plan::{Phase, Step};
use super::progress::Progress;
use crate::capture::Captured;
use crate::failure::Failure;
use crate::measurement::{self, ABSENT, Measurement};
use crate::order::Order;
use crate::result::{self, Absent, Mode, Run, System};
use crate::session::Input;
use crate::side::Side;

/// A guest that takes longer hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// So many workloads, and no other, must fail on Linux for the kernel itself to be given up.
const HOPELESS: usize = 2;
/// More guests side by side need more memory than small hosts have.
const SIDE_BY_SIDE: u32 = 4;

/// What the steps are made of.
pub(super) struct Measuring<'a> {
    pub(super) ours: &'a Side,
    pub(super) linux: Option<&'a Side>,
    /// The order that a step stands for, mode and sides' own needs left out.
    pub(super) order: &'a (dyn Fn(&Step) -> Order + Sync),
    /// The workloads' names.
    pub(super) names: &'a [String],
    pub(super) interruption: &'a Interruption,
    pub(super) progress: &'a Progress,
    pub(super) budget: Duration,
    pub(super) started: Instant,
}

/// A run that ended well.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) subject: usize,
    pub(super) run: Run,
    pub(super) measurements: Vec<Measurement>,
}

/// Everything that came out.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) made: Vec<Made>,
    pub(super) absent: Vec<Absent>,
    /// Phases of which something was left out, with the workloads concerned.
    pub(super) left_out: Vec<(String, BTreeSet<usize>)>,
    /// Workload, system, whether with all mechanisms: not tried again.
    given_up: BTreeSet<(usize, System, bool)>,
    linux_is_hopeless: bool,
    pace: Pace,
}

/// What a run that ended well or not comes to.
enum Came {
    Measured(Vec<Measurement>, Vec<(Option<String>, String)>),
    Absent(String),
    Failed(String),
}

impl Measuring<'_> {
    /// Makes all runs, or those that the time and the user allow.
    pub(super) fn all(&self, phases: &[Phase]) -> Gathered {
        let gathered = Mutex::new(Gathered::default());
        for (index, phase) in phases.iter().enumerate() {
            let queue = Mutex::new(phase.groups.iter());
            let later = &phases[index + 1..];
            std::thread::scope(|scope| {
                for _ in 0..workers(phase) {
                    scope.spawn(|| {
                        while let Some((group, rest)) = next(&queue) {
                            if self.interruption.signal().is_some() {
                                return;
                            }
                            let left = self.time_left(&locked(&gathered).pace, (phase, group, rest), later);
                            self.group(phase, group, left, &gathered);
                        }
                    });
                }
            });
        }
        let mut gathered = gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
        gathered.made.sort_by_key(|made| made.run.id);
        gathered
    }

    /// Makes the runs of a group, unless there is no time for them. `left` is what all further runs will take.
    fn group(&self, phase: &Phase, group: &[Step], left: Duration, gathered: &Mutex<Gathered>) {
        let remaining = self.budget.saturating_sub(self.started.elapsed());
        if !phase.essential && locked(gathered).pace.estimate_all(group) > remaining {
            leave_out(&mut locked(gathered), phase, group);
            return self.progress.advance(group.len());
        }
        for step in group {
            if self.interruption.signal().is_none() && !locked(gathered).has_given_up(step) {
                self.progress.begin(&self.describe(step), left);
                self.step(step, gathered);
            }
            self.progress.advance(1);
        }
    }

    /// What this group, the rest of its phase and the later phases will take: all that is planned, or what fits into the budget,
    /// or what is made even beyond that.
    fn time_left(&self, pace: &Pace, now: (&Phase, &[Step], &[Vec<Step>]), later: &[Phase]) -> Duration {
        let (phase, group, rest) = now;
        let here = pace.estimate_all(group.iter().chain(rest.iter().flatten())) / workers(phase);
        let of_phase = |phase: &Phase| pace.estimate_all(phase.groups.iter().flatten()) / workers(phase);
        let all = here + later.iter().map(of_phase).sum::<Duration>();
        let certain = later.iter().filter(|phase| phase.essential).map(of_phase).sum::<Duration>();
        let certain = if phase.essential { here + certain } else { certain };
        all.min(certain.max(self.budget.saturating_sub(self.started.elapsed())))
    }

    fn step(&self, step: &Step, gathered: &Mutex<Gathered>) {
        let started = Instant::now();
        let load = result::load();
        let mut order = (self.order)(step);
        let input = if order.packed_input.is_some() { Input::Packed } else { Input::Bytes(Vec::new()) };
        order.without.clone_from(&step.without);
        let side = if step.system == System::Linux { self.linux } else { Some(self.ours) };
        let Some(prepared) = side.map(|side| side.prepare(order)) else { return };
        let (captured, order) = match prepared {
            Ok(prepared) => (Captured::run(&prepared, input, Some(LIMIT)), Some(prepared.order)),
            Err(failure) => (Captured::none(failure), None),
        };
        if let Err(Failure::Signal(_)) = captured.ended {
            return;
        }
        let came = judge(&captured);
        let mut gathered = locked(gathered);
        gathered.pace.learn(step, started.elapsed());
        match (came, &captured.ended, order) {
            (Came::Measured(measurements, absences), Ok(outcome), Some(order)) => {
                let mut run = Run::of(step.id, step.system, &order, outcome, load);
                run.pair = step.pair;
                for (case, reason) in absences {
                    gathered.is_absent(Absent { case, ..self.absent(step, reason) });
                }
                gathered.made.push(Made { subject: step.subject, run, measurements });
            }
            (Came::Absent(reason), ..) => {
                gathered.give_up(step);
                gathered.is_absent(Absent { cpus: None, ..self.absent(step, reason) });
            }
            (Came::Failed(reason), ..) => self.failed(step, reason, &mut gathered),
            (Came::Measured(..), ..) => unreachable!("only an outcome is judged as measured"),
        }
    }

    /// A workload failed: it is not tried again on that side; and Linux not at all if nothing has run on it yet.
    fn failed(&self, step: &Step, reason: String, gathered: &mut Gathered) {
        let off = if step.without.is_empty() {
            String::new()
        } else {
            format!(", without {}", step.without.join(", "))
        };
        let reason = format!("{reason} ({}{off})", mode_name(step.mode));
        gathered.give_up(step);
        gathered.is_absent(Absent { failed: true, ..self.absent(step, reason) });
        let on_linux = |system: System| system == System::Linux;
        let failed = gathered.absent.iter().filter(|absent| absent.failed && on_linux(absent.system)).count();
        if failed >= HOPELESS && !gathered.made.iter().any(|made| on_linux(made.run.system)) {
            gathered.linux_is_hopeless = true;
        }
    }

    fn absent(&self, step: &Step, reason: String) -> Absent {
        let workload = Some(self.names[step.subject].clone());
        Absent { workload, case: None, system: step.system, cpus: Some(step.cpus), reason, failed: false }
    }

    /// "mprotect-flip on Linux, 4 CPUs, single mode".
    fn describe(&self, step: &Step) -> String {
        let off = if step.without.is_empty() {
            String::new()
        } else {
            format!(" without {}", step.without.join(", "))
        };
        let plural = if step.cpus == 1 { "CPU" } else { "CPUs" };
        let name = &self.names[step.subject];
        format!("{name} on {}{off}, {} {plural}, {} mode", step.system, step.cpus, mode_name(step.mode))
    }
}

impl Gathered {
    fn has_given_up(&self, step: &Step) -> bool {
        (step.system == System::Linux && self.linux_is_hopeless)
            || self.given_up.contains(&(step.subject, step.system, step.without.is_empty()))
    }

    fn give_up(&mut self, step: &Step) {
        self.given_up.insert((step.subject, step.system, step.without.is_empty()));
    }

    /// Several runs may have the same to say.
    fn is_absent(&mut self, absent: Absent) {
        if !self.absent.contains(&absent) {
            self.absent.push(absent);
        }
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Deterministic => "deterministic",
        Mode::Single => "single",
        Mode::Parallel => "parallel",
    }
}

/// How many runs of a phase are made at once.
fn workers(phase: &Phase) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    if phase.side_by_side { cores.min(SIDE_BY_SIDE) } else { 1 }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next group of a phase, and those after it.
fn next<'a>(queue: &Mutex<std::slice::Iter<'a, Vec<Step>>>) -> Option<(&'a [Step], &'a [Vec<Step>])> {
    let mut queue = locked(queue);
    let group = queue.next()?;
    Some((group, queue.as_slice()))
}

fn leave_out(gathered: &mut Gathered, phase: &Phase, group: &[Step]) {
    let subjects = group.iter().map(|step| step.subject);
    match gathered.left_out.iter_mut().find(|(what, _)| *what == phase.what) {
        Some((_, known)) => known.extend(subjects),
        None => gathered.left_out.push((phase.what.clone(), subjects.collect())),
    }
}

/// What a run measured, or why it did not.
fn judge(captured: &Captured) -> Came {
    let output = captured.output_text();
    let first = |text: &str| text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    let outcome = match &captured.ended {
        Ok(outcome) => outcome,
        Err(failure) => return Came::Failed(first(failure.sentence().unwrap_or_default())),
    };
    match outcome.report.exit {
        Exit::Code(0) => {}
        Exit::Code(ABSENT) => {
            let reason = measurement::absences(&output).into_iter().find(|(case, _)| case.is_none());
            return Came::Absent(
                reason
                    .map_or_else(|| "it says that this kernel lacks something".into(), |(_, reason)| reason),
            );
        }
        Exit::Code(status) => {
            return Came::Failed(format!("status {status}: {}", first(&captured.errors_text())));
        }
        Exit::Signal(signal) => return Came::Failed(format!("signal {signal} killed it")),
    }
    match Measurement::all_of(&output) {
        Err(why) => Came::Failed(why),
        Ok(measurements) if measurements.is_empty() => Came::Failed("it printed no measurement".into()),
        Ok(_) if output.lines().last() != Some("ok") => {
            Came::Failed("it did not print 'ok' at its end".into())
        }
        Ok(measurements) => Came::Measured(measurements, measurement::absences(&output)),
    }
}
