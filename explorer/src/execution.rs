//! One run: CPUs as coroutines, and the loop that offers choices and carries them out.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::choice::{Choice, Priced};
use crate::memory::{Memory, Word};
use crate::processor::{
    History, SharedHardware, idle, install, place, set_running, set_yielder, take_outcome, with,
};
use crate::{Access, Digest, Finding, Outcome, Schedule, Step, Strategy};

/// A run that makes more steps than this does not end.
const MOST_STEPS: usize = 20_000;
/// How many of its latest reads a waiting CPU watches: enough for the condition of any loop in the code under check.
const WATCHED: usize = 4;
const STACK: usize = 256 << 10;

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
    postponed: bool,
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
    watched: VecDeque<(Word, u64)>,
    last_line: Option<&'static std::panic::Location<'static>>,
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

type Coroutines = Vec<Coroutine<Resume, Step, (), DefaultStack>>;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
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

fn coroutine(program: Box<dyn FnOnce()>) -> Coroutine<Resume, Step, (), DefaultStack> {
    let pooled = STACKS.with_borrow_mut(Vec::pop);
    let stack = pooled.unwrap_or_else(|| DefaultStack::new(STACK).expect("the host has memory for a stack"));
    Coroutine::with_stack(stack, move |yielder: &Yielder<Resume, Step>, _| {
        set_yielder(yielder);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(program)) {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            crate::fail(format!("the code under check gave up: {text}"));
            loop {
                yielder.suspend(Step::Failed);
            }
        }
        idle();
    })
}

/// Ends all CPUs, which are idle, and keeps their stacks for the next run.
fn end(coroutines: Coroutines) {
    for (cpu, mut coroutine) in coroutines.into_iter().enumerate() {
        with(|execution| execution.current = cpu);
        let ended = coroutine.resume(Resume::End);
        debug_assert!(matches!(ended, CoroutineResult::Return(())));
        STACKS.with_borrow_mut(|stacks| stacks.push(coroutine.into_stack()));
    }
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

/// Offers what the hardware will do sooner or later: for nothing if there is nothing else to do.
fn offer_due(hardware: &SharedHardware, next: &Step, offers: &mut Vec<Priced>) {
    let price = u8::from(!offers.is_empty());
    if price == 0 || matters(next) {
        let mut due = Vec::new();
        hardware.due(&mut due);
        offers.extend(due.into_iter().map(|event| Priced { choice: Choice::Hardware(event), price }));
    }
}

/// Whether what the hardware does could matter for a CPU that makes this step next.
fn matters(next: &Step) -> bool {
    next.changes_memory() || matches!(next, Step::Wait | Step::Idle)
}

fn offer_hardware(hardware: &SharedHardware, next: &Step, offers: &mut Vec<Priced>, all_idle: bool) {
    let mut events = Vec::new();
    if all_idle || matters(next) {
        hardware.events(next, &mut events);
    }
    offers.extend(events.into_iter().map(|event| Priced { choice: Choice::Hardware(event), price: 1 }));
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

    /// Lists the choices there are about CPUs and buffers, the free one first, and says what the CPU of that one does next.
    /// Nothing is offered if all CPUs are idle or wait for each other.
    fn offer(&self, offers: &mut Vec<Priced>) -> Step {
        let count = self.processors.len();
        let price = u8::from(self.can_proceed(self.current));
        // Stores do not stay in a buffer for ever.
        let is_waiting = |cpu: &usize| matches!(self.processors[*cpu].step, Step::Wait | Step::Idle);
        let (at_rest, held_up): (Vec<_>, Vec<_>) =
            (0..count).filter(|cpu| self.memory.holds(*cpu)).partition(is_waiting);
        offers.extend(at_rest.into_iter().map(|cpu| Priced { choice: Choice::Drain(cpu), price: 0 }));
        for offset in 0..count {
            let cpu = (self.current + offset) % count;
            self.offer_cpu(cpu, if offset == 0 { 0 } else { price }, offers);
        }
        if offers.is_empty() {
            return Step::Idle;
        }
        let next = offers[0].choice.cpu().map_or(Step::Idle, |cpu| self.processors[cpu].step);
        offers.extend(held_up.into_iter().map(|cpu| Priced { choice: Choice::Drain(cpu), price: 1 }));
        let unmaskable = (0..count).filter(|cpu| self.can_take_unmaskable(*cpu)).map(Choice::Unmaskable);
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        let exchanges = pairs.filter(|(one, other)| self.can_exchange(*one, *other));
        let exchanges = exchanges.map(|(one, other)| Choice::Exchange(one, other));
        offers.extend(unmaskable.chain(exchanges).map(|choice| Priced { choice, price: 1 }));
        next
    }

    fn can_take_unmaskable(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        let is_running = !matches!(processor.step, Step::Begin | Step::Idle | Step::Failed);
        processor.unmaskable > 0 && !processor.paused && !processor.beyond_masks && is_running
    }

    fn can_exchange(&self, one: usize, other: usize) -> bool {
        let can_move = |cpu: usize| {
            let processor = &self.processors[cpu];
            let is_there = !matches!(processor.step, Step::Begin | Step::Failed);
            processor.preemptible && !processor.masked && is_there
        };
        let is_idle = |cpu: usize| matches!(self.processors[cpu].step, Step::Idle);
        can_move(one) && can_move(other) && !(is_idle(one) && is_idle(other))
    }

    fn offer_cpu(&self, cpu: usize, price: u8, offers: &mut Vec<Priced>) {
        let processor = &self.processors[cpu];
        let (can_run, can_take) = (self.can_run(cpu), self.can_take(cpu));
        let mut offer = |choice, price| offers.push(Priced { choice, price });
        if can_take && !(processor.postponed && can_run) {
            offer(Choice::Interrupt(cpu), price);
            if can_run && !matches!(processor.step, Step::Wait) {
                offer(Choice::RunPostponing(cpu), price + 1);
            }
            return;
        }
        if can_run {
            offer(Choice::Run(cpu), price);
            let stores = matches!(
                processor.step,
                Step::Memory { access: Access::Store, .. } | Step::Machine { stores: true, .. }
            );
            if stores && !self.memory.holds(cpu) {
                offer(Choice::RunHolding(cpu), price + 1);
            }
        }
        if can_take {
            offer(Choice::Interrupt(cpu), price + 1);
        }
    }

    fn can_run(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        if processor.paused {
            return false;
        }
        match processor.step {
            Step::Wait => processor.watched.iter().any(|(word, seen)| word.get() != *seen),
            Step::Idle | Step::Failed => false,
            _ => true,
        }
    }

    fn can_take(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        processor.pending && !processor.masked && !processor.paused && !matches!(processor.step, Step::Begin)
    }

    fn can_proceed(&self, cpu: usize) -> bool {
        self.can_run(cpu) || self.can_take(cpu)
    }

    fn is_stuck(&mut self) -> bool {
        self.processors.iter().any(|processor| matches!(processor.step, Step::Wait) || processor.pending)
    }

    fn fail_stuck(&mut self) {
        let describe = |(cpu, processor): (usize, &Processor)| {
            let what = match (processor.step, processor.last_line) {
                (Step::Wait, Some(line)) => format!("waits at {}", place(line)),
                _ => "has nothing to do".to_owned(),
            };
            let off = if processor.masked { " with interrupts off" } else { "" };
            let pending = if processor.pending { ", an interrupt before it" } else { "" };
            format!("CPU {cpu} {what}{off}{pending}")
        };
        let all: Vec<_> = self.processors.iter().enumerate().map(describe).collect();
        self.fail(format!("nobody can go on: {}", all.join("; ")));
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
