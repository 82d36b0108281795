//! One run: CPUs as coroutines, and the loop that has a choice made of what is offered (`offers.rs`) and carries it out.

use std::collections::VecDeque;

use corosensei::{CoroutineResult, Yielder};

use crate::choice::{Choice, Priced};
use crate::coroutines::{Coroutines, coroutine, end};
use crate::memory::{Memory, Word};
use crate::offers::{offer_due, offer_hardware};
use crate::processor::{History, SharedHardware, install, set_running, take_outcome, with};
use crate::{Digest, Finding, Outcome, Schedule, Step, Strategy};

/// A run that makes more steps than this does not end.
const MOST_STEPS: usize = 20_000;
/// How many of its latest reads a waiting CPU watches: enough for the condition of any loop in the code under check.
const WATCHED: usize = 4;

/// What runs: made anew for each run, with the set-up done and the hardware [attached](crate::attach).
pub struct Program {
    /// What each CPU does.
    pub cpus: Vec<Box<dyn FnOnce()>>,
    /// What must be true in the end.
    pub finally: Box<dyn FnOnce() -> Result<(), String>>,
}

/// What a CPU is resumed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Go,
    Interrupt,
    Unmaskable,
    End,
}

/// A CPU, and what is kept of the thread on it beside its coroutine.
pub(crate) struct Processor {
    pub(crate) masked: bool,
    /// The hardware lets it make no step and take no interrupt.
    pub(crate) paused: bool,
    pub(crate) pending: bool,
    /// The pending interrupt was postponed, and waits for the CPU to wait.
    pub(crate) postponed: bool,
    /// How many interrupts that cannot be masked may still come.
    pub(crate) unmaskable: u8,
    /// It is handling one.
    pub(crate) beyond_masks: bool,
    /// Its thread may be moved to another CPU.
    pub(crate) preemptible: bool,
    /// It took an interrupt since it last looked whether it must wait.
    pub(crate) disturbed: bool,
    pub(crate) history: History,
    pub(crate) step: Step,
    pub(crate) yielder: *const Yielder<Resume, Step>,
    pub(crate) watched: VecDeque<(Word, u64)>,
    pub(crate) last_line: Option<&'static std::panic::Location<'static>>,
}

/// A run.
pub(crate) struct Execution {
    pub(crate) current: usize,
    pub(crate) processors: Vec<Processor>,
    pub(crate) memory: Memory,
    /// The store that the current CPU is about to make waits in the buffer.
    pub(crate) holds_next: bool,
    /// The story so far, if it is told.
    pub(crate) story: Option<Vec<(String, String)>>,
    pub(crate) hardware: Option<SharedHardware>,
    finding: Option<Finding>,
    steps: usize,
    decisions: usize,
    schedule: Schedule,
}

/// Makes one run: sets it up by `make`, for so many CPUs, and lets `strategy` choose. `None` if the strategy has no further run.
///
/// # Panics
/// If the set-up does.
pub fn run(
    strategy: &mut dyn Strategy,
    cpus: usize,
    narrate: bool,
    make: &dyn Fn() -> Program,
) -> Option<Outcome> {
    if !strategy.begin() {
        return None;
    }
    install(Some(Execution::new(cpus, narrate)));
    let program = make();
    let hardware = with(|execution| execution.hardware()).expect("a run is set up");
    let mut coroutines: Coroutines = program.cpus.into_iter().map(coroutine).collect();
    assert_eq!(coroutines.len(), cpus, "a program for each CPU");
    set_running(true);
    while proceed(strategy, &mut coroutines, &hardware) {}
    set_running(false);
    let is_sound = with(|execution| execution.finding.is_none()).unwrap_or(false);
    if is_sound {
        end(coroutines);
        if let Err(sentence) = (program.finally)() {
            crate::fail(sentence);
        }
    } else {
        // What is half done stays so: there is nothing sound to be done with it.
        coroutines.into_iter().for_each(std::mem::forget);
        std::mem::forget(program.finally);
        std::mem::forget(hardware);
    }
    let outcome = take_outcome();
    let execution = install(None);
    if !is_sound {
        std::mem::forget(execution);
    }
    outcome
}

/// Makes runs until one finds something or there is no further one. Says how many there were, and the last finding.
pub fn explore(
    strategy: &mut dyn Strategy,
    cpus: usize,
    make: &dyn Fn() -> Program,
    mut after_each: impl FnMut(u64) -> bool,
) -> (u64, Option<Outcome>) {
    let mut runs = 0;
    while let Some(outcome) = run(strategy, cpus, false, make) {
        runs += 1;
        if outcome.finding.is_some() {
            return (runs, Some(outcome));
        }
        if !after_each(runs) {
            break;
        }
    }
    (runs, None)
}

/// Makes one choice and carries it out; says whether the run goes on.
fn proceed(strategy: &mut dyn Strategy, coroutines: &mut Coroutines, hardware: &SharedHardware) -> bool {
    let mut offers = Vec::with_capacity(8);
    let next = with(|execution| execution.offer(&mut offers)).expect("a run is going on");
    offer_due(hardware, &next, &mut offers);
    let all_idle = offers.is_empty();
    offer_hardware(hardware, &next, &mut offers, all_idle);
    if all_idle {
        let stuck = with(Execution::is_stuck).unwrap_or(false);
        if stuck && offers.is_empty() {
            with(Execution::fail_stuck);
            return false;
        }
        if offers.is_empty() {
            return false;
        }
    }
    let offered = offers.len() + usize::from(all_idle);
    let chosen = if offered == 1 { 0 } else { choose(strategy, &offers, all_idle, hardware) };
    let Some(chosen) = chosen.checked_sub(usize::from(all_idle)) else {
        // Nothing more happens, which was free to choose.
        let stuck = with(Execution::is_stuck).unwrap_or(false);
        if stuck {
            with(Execution::fail_stuck);
        }
        return false;
    };
    carry_out(offers[chosen].choice, coroutines, hardware);
    with(|execution| {
        execution.steps += 1;
        if execution.steps > MOST_STEPS {
            execution.fail(format!("no end after {MOST_STEPS} steps"));
        }
        execution.finding.is_none()
    })
    .unwrap_or(false)
}

/// Asks the strategy. With `may_end` the first offer is to let the run end.
fn choose(strategy: &mut dyn Strategy, offers: &[Priced], may_end: bool, hardware: &SharedHardware) -> usize {
    let state = || {
        let own = with(|execution| execution.state()).unwrap_or_default();
        own.with(hardware.state().number())
    };
    let chosen = if may_end {
        let end = Priced { choice: Choice::Run(usize::MAX), price: 0 };
        let all: Vec<_> = std::iter::once(end).chain(offers.iter().copied()).collect();
        strategy.choose(&all, &state)
    } else {
        strategy.choose(offers, &state)
    };
    with(|execution| {
        execution.decisions += 1;
        if chosen != 0 {
            let decision = execution.decisions;
            execution.schedule.deviate(decision, chosen);
        }
    });
    chosen
}

fn carry_out(choice: Choice, coroutines: &mut Coroutines, hardware: &SharedHardware) {
    match choice {
        Choice::Run(cpu) => {
            with(|execution| execution.holds_next = false);
            resume(cpu, Resume::Go, coroutines);
        }
        Choice::RunHolding(cpu) => {
            with(|execution| execution.holds_next = true);
            resume(cpu, Resume::Go, coroutines);
        }
        Choice::RunPostponing(cpu) => {
            with(|execution| execution.processors[cpu].postponed = true);
            resume(cpu, Resume::Go, coroutines);
        }
        Choice::Interrupt(cpu) => {
            with(|execution| {
                let processor = &mut execution.processors[cpu];
                (processor.pending, processor.postponed) = (false, false);
                execution.current = cpu;
            });
            crate::narrate(|| "takes its interrupt".to_owned());
            resume(cpu, Resume::Interrupt, coroutines);
        }
        Choice::Unmaskable(cpu) => {
            with(|execution| {
                execution.processors[cpu].unmaskable -= 1;
                execution.current = cpu;
            });
            crate::narrate(|| "takes an interrupt that cannot be masked".to_owned());
            resume(cpu, Resume::Unmaskable, coroutines);
        }
        Choice::Exchange(one, other) => {
            let before = with(|execution| execution.current).unwrap_or(0);
            // To change threads serialises.
            for cpu in [one, other] {
                with(|execution| execution.current = cpu);
                crate::serialise();
            }
            with(|execution| execution.exchange_threads(one, other));
            coroutines.swap(one, other);
            crate::narrate(|| format!("and CPU {one} exchange their threads"));
            // Whose turn it was, it stays.
            let moved = [(one, other), (other, one)].into_iter().find(|(from, _)| *from == before);
            with(|execution| execution.current = moved.map_or(before, |(_, to)| to));
        }
        Choice::Drain(cpu) => {
            let store = with(|execution| {
                let before = std::mem::replace(&mut execution.current, cpu);
                let store = execution.memory.drain(cpu);
                (store, before)
            });
            if let Some((Some(store), before)) = store {
                crate::narrate(|| "its oldest store becomes visible".to_owned());
                hardware.stored(&store);
                with(|execution| execution.current = before);
            }
        }
        Choice::Hardware(event) => {
            hardware.perform(event);
        }
    }
}

fn resume(cpu: usize, what: Resume, coroutines: &mut Coroutines) {
    with(|execution| {
        execution.current = cpu;
        let processor = execution.processor();
        // Also a step that reads nothing moves its CPU on.
        processor.history = processor.history.with(what as u64);
        if matches!(processor.step, Step::Wait) && what == Resume::Go {
            processor.watched.clear();
        }
    });
    let stopped = coroutines[cpu].resume(what);
    let CoroutineResult::Yield(step) = stopped else { unreachable!("a CPU idles until the run ends") };
    with(|execution| {
        let processor = execution.processor();
        processor.step = step;
        if let Step::Memory { line, .. } = step {
            processor.last_line = Some(line);
        }
    });
}

impl Execution {
    fn new(cpus: usize, narrate: bool) -> Self {
        let processor = |_| Processor {
            masked: false,
            paused: false,
            pending: false,
            postponed: false,
            unmaskable: 0,
            beyond_masks: false,
            preemptible: false,
            disturbed: false,
            history: Digest::EMPTY,
            step: Step::Begin,
            yielder: std::ptr::null(),
            watched: VecDeque::new(),
            last_line: None,
        };
        Execution {
            current: 0,
            processors: (0..cpus).map(processor).collect(),
            memory: Memory::new(cpus),
            holds_next: false,
            story: narrate.then(Vec::new),
            hardware: None,
            finding: None,
            steps: 0,
            decisions: 0,
            schedule: Schedule::default(),
        }
    }

    /// Moves what belongs to two threads to the other CPU.
    fn exchange_threads(&mut self, one: usize, other: usize) {
        let [one, other] = self.processors.get_disjoint_mut([one, other]).expect("two CPUs");
        std::mem::swap(&mut one.history, &mut other.history);
        std::mem::swap(&mut one.step, &mut other.step);
        std::mem::swap(&mut one.yielder, &mut other.yielder);
        std::mem::swap(&mut one.watched, &mut other.watched);
        std::mem::swap(&mut one.last_line, &mut other.last_line);
        std::mem::swap(&mut one.disturbed, &mut other.disturbed);
        std::mem::swap(&mut one.preemptible, &mut other.preemptible);
    }

    pub(crate) fn processor(&mut self) -> &mut Processor {
        &mut self.processors[self.current]
    }

    pub(crate) fn hardware(&self) -> SharedHardware {
        self.hardware.clone().expect("hardware was attached while the run was set up")
    }

    pub(crate) fn has_hardware(&self) -> bool {
        self.hardware.is_some()
    }

    pub(crate) fn fail(&mut self, sentence: String) {
        let cpu = self.current;
        self.finding.get_or_insert(Finding { sentence, cpu });
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.finding.is_some()
    }

    /// Takes note of what the current CPU found in a word, or put there.
    pub(crate) fn learn(&mut self, word: Word, value: u64, kind: u64) {
        let name = self.memory.name(self.current, word.address());
        let processor = self.processor();
        processor.history = processor.history.with(name).with(value).with(kind);
        if processor.watched.len() == WATCHED {
            processor.watched.pop_front();
        }
        processor.watched.push_back((word, value));
    }

    fn state(&self) -> Digest {
        let mut digest = self.memory.state().with(self.current as u64);
        for processor in &self.processors {
            let flags = u64::from(processor.masked)
                | u64::from(processor.pending) << 1
                | u64::from(processor.postponed) << 2
                | u64::from(processor.preemptible) << 3
                | u64::from(processor.paused) << 4
                | u64::from(processor.unmaskable) << 8;
            digest = digest.with(processor.history.number()).with(flags);
        }
        digest
    }

    pub(crate) fn tell(&mut self, line: String, picture: String) {
        let line = format!("CPU {}  {line}", self.current);
        if let Some(story) = &mut self.story {
            story.push((line, picture));
        }
    }

    pub(crate) fn outcome(&mut self) -> Outcome {
        Outcome {
            finding: self.finding.take(),
            steps: self.steps,
            schedule: std::mem::take(&mut self.schedule),
            story: self.story.take().unwrap_or_default(),
        }
    }
}
