//! One simulation: CPUs that go through programs, and interrupts that reach them meanwhile.
//!
//! There is one queue of events, ordered by time and then by when they were made, so that a run repeats. A CPU has at most one
//! event at which it goes on (`Ready`). An interrupt that is taken while the CPU works moves the end of that work; the event finds out
//! when it comes. A waiting CPU has no event; whoever ends its waiting makes one.
//!
//! `action.rs` is what programs do, `sending.rs` who is told of a change and when the interrupts arrive, `handling.rs` what a target does.
//!
//! **What is taken for granted.** Spinning costs the others nothing beside the line that goes around. Requests are in their targets' inboxes
//! at the moment at which sending begins. Interrupts to user code and to the kernel cost the same.

mod action;
mod handling;
mod sending;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use coherence::Mode;

use super::consultation::{self, Request, Work};
use super::locks::{Line, Lock};
use super::outcome::{Outcome, Tally};
use super::parameters::{Parameters, Time, nanoseconds};
use super::policy::{Means, Policy};
use super::random::Random;
use super::topology::Topology;
use super::workload::{Beside, Case, Change, Step};
use action::Action;

pub use handling::decide;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// What everything costs.
    pub parameters: &'a Parameters,
    /// Whose kernel it is.
    pub policy: &'a Policy,
    /// What the threads do.
    pub case: &'a Case,
    /// The same seed gives the same run.
    pub seed: u64,
    /// About how many operations; none for as many as give figures that stand still.
    pub operations: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The CPU goes on, if nothing has delayed it.
    Ready(usize),
    /// An interrupt has come to the CPU.
    Arrive(usize),
    /// The CPU takes it.
    Begin(usize),
    /// The timer strikes.
    Tick(usize),
}

/// What a CPU has of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Active,
    Lazy,
    Absent,
}

/// A thread that acts.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// The next step of the program.
    next: usize,
    /// What the present step still has to do.
    todo: VecDeque<Action>,
    /// Which of the tables its pages are in.
    table: usize,
    /// Interrupts that this operation has sent.
    sent: u64,
    operations: u64,
    /// When its first counted operation began.
    counted_from: Option<(u64, Time)>,
    last_done: Time,
    /// When its present flush began.
    flush_began: Time,
    /// Pages since its last batch was reclaimed.
    reclaimable: u64,
}

/// A request in an inbox.
#[derive(Clone, Copy, Debug)]
struct Posted {
    initiator: usize,
    errand: Errand,
}

#[derive(Clone, Copy, Debug)]
enum Errand {
    Barrier,
    /// A flush of the address space of all, which has generations.
    Flush {
        generation: u64,
        work: Work,
    },
    /// A flush of an address space of the target's own.
    Private(Work),
}

#[derive(Clone, Debug)]
struct Cpu {
    thread: Option<Thread>,
    mode: Mode,
    position: Position,
    caught_up: u64,
    /// When it goes on; none if it waits for somebody or has nothing to do.
    until: Option<Time>,
    /// Whether it works until then, or only waits.
    works: bool,
    waits_for_answers: bool,
    handler_until: Time,
    will_begin: bool,
    inbox: Vec<Posted>,
    /// Targets that have not answered.
    outstanding: usize,
    last_answer: Time,
    /// The counter that targets count down, where there is one.
    counter: Line,
    /// Entries put off since its tick, and how many of all it has seen.
    lazy_used: u64,
    lazy_seen: u64,
}

/// The state of a run.
struct Simulation<'a> {
    setup: &'a Setup<'a>,
    topology: Topology,
    random: Random,
    program: Vec<Step>,
    answers: HashMap<ChangeKey, Vec<Request>>,
    barrier: [bool; 3],
    cpus: Vec<Cpu>,
    locks: Vec<Lock>,
    generation: u64,
    lazy_entries: u64,
    pooled: u64,
    queue: BinaryHeap<Reverse<(Time, u64, Event)>>,
    made: u64,
    now: Time,
    started: u64,
    operations: u64,
    least_time: Time,
    tally: Tally,
}

type ChangeKey = (u8, u64, bool);

fn key(change: &Change) -> ChangeKey {
    (change.kind as u8, change.pages, change.frees_table)
}

/// Runs it.
pub fn simulate(setup: &Setup<'_>) -> Outcome {
    let mut simulation = Simulation::new(setup);
    simulation.start();
    simulation.run();
    simulation.tally.outcome(setup.case.cpus, simulation.now)
}

impl<'a> Simulation<'a> {
    fn new(setup: &'a Setup<'a>) -> Self {
        let program = setup.case.program(setup.parameters, setup.policy);
        let changes = program.iter().filter_map(|step| match step {
            Step::Flush(change) => Some(change),
            _ => None,
        });
        let ceiling = setup.parameters.ceiling as u64;
        let answers = changes
            .map(|change| (key(change), consultation::ask(change, setup.policy.switches, ceiling)))
            .collect();
        let tables = setup.case.actors.div_ceil(setup.case.per_table());
        let locks = action::FIRST_TABLE + tables.max(setup.case.cpus);
        Simulation {
            setup,
            topology: Topology::new(setup.case.cpus, setup.parameters),
            random: Random::new(setup.seed),
            program,
            answers,
            barrier: consultation::ask_barrier(setup.policy.switches),
            cpus: (0..setup.case.cpus).map(|cpu| Cpu::new(setup.case, cpu)).collect(),
            locks: vec![Lock::default(); locks + setup.case.cpus],
            generation: 0,
            lazy_entries: 0,
            pooled: 0,
            queue: BinaryHeap::new(),
            made: 0,
            now: 0,
            started: 0,
            operations: setup.operations.unwrap_or_else(|| enough(setup.case)),
            // Entries that are put off until a tick need a few of them.
            least_time: match setup.policy.means {
                Means::Lazily => nanoseconds(3.0 * setup.parameters.tick),
                _ => 0,
            },
            tally: Tally::default(),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.made += 1;
        self.queue.push(Reverse((time, self.made, event)));
    }

    /// Threads do not begin together, nor do ticks.
    fn start(&mut self) {
        for cpu in 0..self.setup.case.actors {
            let time = nanoseconds(self.random.share() * 5000.0);
            self.goes_on(cpu, time);
        }
        if self.setup.policy.means == Means::Lazily {
            for cpu in 0..self.cpus.len() {
                let time = nanoseconds(self.random.share() * self.setup.parameters.tick);
                self.at(time, Event::Tick(cpu));
            }
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((time, _, event))) = self.queue.pop() {
            self.now = time;
            match event {
                Event::Ready(cpu) => self.ready(cpu),
                Event::Arrive(cpu) => self.arrive(cpu),
                Event::Begin(cpu) => self.begin(cpu),
                Event::Tick(cpu) => self.tick(cpu),
            }
        }
        debug_assert!(self.cpus.iter().all(|cpu| cpu.inbox.is_empty() && cpu.outstanding == 0));
    }

    /// The CPU does or waits for nothing any more from that time on.
    fn goes_on(&mut self, cpu: usize, time: Time) {
        let time = time.max(self.cpus[cpu].handler_until);
        (self.cpus[cpu].until, self.cpus[cpu].works) = (Some(time), false);
        self.at(time, Event::Ready(cpu));
    }

    /// The CPU works for so long.
    fn works(&mut self, cpu: usize, work: Time) {
        let shares = self.topology.shares_core(cpu, self.setup.case.actors);
        let slower = if shares { self.setup.parameters.core_sharing } else { 1.0 };
        let time = self.now + (work as f64 * slower) as Time;
        (self.cpus[cpu].until, self.cpus[cpu].works) = (Some(time), true);
        self.at(time, Event::Ready(cpu));
    }

    fn ready(&mut self, cpu: usize) {
        match self.cpus[cpu].until {
            // Interrupts came meanwhile.
            Some(until) if until > self.now => self.at(until, Event::Ready(cpu)),
            Some(_) => {
                self.cpus[cpu].until = None;
                self.advance(cpu);
            }
            None => {}
        }
    }

    /// Whether threads begin further operations.
    fn is_on(&self) -> bool {
        self.started < self.operations || self.now < self.least_time
    }

    /// The timer: what was put off is swept, as long as anybody acts.
    fn tick(&mut self, cpu: usize) {
        if !self.is_on() {
            return;
        }
        let parameters = self.setup.parameters;
        let missed = self.lazy_entries - self.cpus[cpu].lazy_seen;
        let sweep = if missed as f64 > parameters.ceiling {
            parameters.cycles(parameters.invalidate_all)
        } else {
            parameters.cycles(parameters.invalidate_page * missed as f64)
        };
        let looks = nanoseconds(parameters.lazy_look * self.cpus.len() as f64);
        self.steal(cpu, sweep + looks);
        (self.cpus[cpu].lazy_seen, self.cpus[cpu].lazy_used) = (self.lazy_entries, 0);
        self.at(self.now + nanoseconds(parameters.tick), Event::Tick(cpu));
    }

    /// Takes time from whatever the CPU does.
    fn steal(&mut self, cpu: usize, time: Time) {
        self.tally.stolen += time;
        let cpu = &mut self.cpus[cpu];
        cpu.handler_until = cpu.handler_until.max(self.now) + time;
        match &mut cpu.until {
            Some(until) if cpu.works => *until += time,
            Some(until) => *until = (*until).max(cpu.handler_until),
            None => {}
        }
    }
}

impl Cpu {
    fn new(case: &Case, cpu: usize) -> Self {
        let acts = cpu < case.actors;
        let table = cpu / case.per_table();
        let (mode, position) = match case.beside {
            _ if acts => (Mode::User, Position::Active),
            Beside::Spins => (Mode::User, Position::Active),
            Beside::Calls => (Mode::Kernel, Position::Active),
            Beside::Sleeps => (Mode::Idle, Position::Lazy),
        };
        Cpu {
            thread: acts.then(|| Thread { table, ..Thread::default() }),
            mode,
            position,
            caught_up: 0,
            until: None,
            works: false,
            waits_for_answers: false,
            handler_until: 0,
            will_begin: false,
            inbox: Vec::new(),
            outstanding: 0,
            last_answer: 0,
            counter: Line::default(),
            lazy_used: 0,
            lazy_seen: 0,
        }
    }
}

/// So many operations that figures stand still, and that the largest machines take a second.
fn enough(case: &Case) -> u64 {
    let (cpus, actors) = (case.cpus as u64, case.actors as u64);
    match case.has_own_spaces() {
        true => (actors * 512).max(40_000),
        false => (1_500_000 / cpus).clamp(actors * 6, 12_000),
    }
}
