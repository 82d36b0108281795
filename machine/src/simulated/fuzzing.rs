//! Programs of memory calls (crate `fuzz`) on this machine: each under many schedules, with the oracle watching.
//!
//! Actors are threads, and CPUs run them: a CPU makes the steps of the actors that are on it, and where an actor is at each round is known
//! beforehand (it moves by `hop`). A CPU that has no actor runs a kernel thread and borrows the last space, or lets go of it.
//! Rounds are kept apart by a count of the steps that are done, for which CPUs wait in user mode.

mod plan;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use coherence::Switches;
use core::sync::atomic::Ordering::{Acquire, Release};
use explorer::{AtomicU64, Random, explore};
use fuzz::{
    Address, Answer, Call, Final, Look, PAGE, Program, SLOTS, Step, Trace, USER_END, WINDOW, WINDOW_PAGES,
};
use memory::{AreaFlags, Backing, Environment, Error, Identity, MemoryObject, PageRange, Rights};

use super::answers::{access, error, fault, incore, range};
use super::check::silence_panics;
use super::machine::{Build, SimulatedEnvironment, SimulatedSpace};
use super::operation::Promise;
use super::scenario::Scenario;
use plan::Plan;

/// The machine has few frames; with fewer left than this, what is refused says nothing.
const FEW_FRAMES: usize = 12;
/// Schedules of a program whose steps follow one another, and of one with races.
const SCHEDULES: [u64; 2] = [2, 24];
/// Mappings larger than this do not fit.
const MOST_PAGES: u64 = 32;

/// What is asked for.
#[derive(Debug)]
pub struct Fuzzing {
    pack: PathBuf,
    seed: u64,
}

impl Fuzzing {
    /// From the words of a command line.
    ///
    /// # Errors
    /// A sentence about the first word that makes no sense.
    pub fn from_arguments(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let words: Vec<String> = words.collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["--pack", pack, "--seed", seed] => {
                let seed = seed.parse().map_err(|_| "a seed is a number".to_owned())?;
                Ok(Fuzzing { pack: pack.into(), seed })
            }
            _ => Err("what is needed is --pack FILE --seed N; './ceasefire fuzz' gives it".into()),
        }
    }

    /// Runs the programs and prints what they observed: every trace that some schedule gave, once.
    ///
    /// # Errors
    /// A sentence about the pack.
    pub fn run(&self) -> Result<(), String> {
        silence_panics();
        let text =
            std::fs::read_to_string(&self.pack).map_err(|error| format!("cannot read the pack: {error}"))?;
        for program in fuzz::unpack(&text)? {
            if fits(&program) {
                explore_program(&Rc::new(program), self.seed);
            }
        }
        Ok(())
    }
}

/// Whether the machine has room for a program.
fn fits(program: &Program) -> bool {
    let is_small = |length: u64| length <= MOST_PAGES * PAGE || length > 1 << 36;
    let is_near = |at: &Address| !matches!(at, Address::Window(page, _) if *page > 2 * fuzz::BOUNDARY);
    program.steps().all(|step| match &step.call {
        Call::Map { at, length, .. } => is_small(*length) && is_near(at),
        Call::Remap { at, new, to, .. } => is_small(*new) && is_near(at) && is_near(to),
        _ => true,
    })
}

/// What a run writes down.
struct Notes {
    answers: Vec<Answer>,
    slots: [u64; SLOTS as usize],
    /// The number of each process's space, by its first actor.
    spaces: BTreeMap<u8, usize>,
    objects: u64,
    ran_short: bool,
    finals: Vec<Final>,
}

struct Stage {
    program: Rc<Program>,
    machine: SimulatedEnvironment,
    notes: Rc<RefCell<Notes>>,
    done: Rc<AtomicU64>,
    plan: Rc<Plan>,
}

fn explore_program(program: &Rc<Program>, seed: u64) {
    let plan = Rc::new(Plan::of(program));
    let traces = Traces::default();
    let mut random = Random::new(seed, SCHEDULES[usize::from(program.races())]);
    let build = || stage(program, &plan, &traces);
    let (schedules, outcome) = explore(&mut random, plan.cpus, &build, |_| true);
    println!("schedules {schedules}");
    for (answers, finals) in traces.borrow().iter() {
        print_trace(program, answers, finals, None);
    }
    if let Some(finding) = outcome.and_then(|outcome| outcome.finding) {
        let sentence = format!("{} (seed {})", finding.sentence, random.seed());
        print_trace(program, &[], &[], Some(&sentence));
    }
}

fn print_trace(program: &Program, answers: &[Answer], finals: &[String], found: Option<&str>) {
    println!("program {}", program.name);
    println!("answers {}", answers.iter().map(Answer::to_string).collect::<Vec<_>>().join(" "));
    finals.iter().for_each(|end| println!("{end}"));
    if let Some(found) = found {
        println!("found {}", found.lines().next().unwrap_or_default());
    }
    println!("end {}", program.name);
}

type Traces = Rc<RefCell<BTreeSet<(Vec<Answer>, Vec<String>)>>>;

/// A fresh machine with the program on it.
fn stage(program: &Rc<Program>, plan: &Rc<Plan>, traces: &Traces) -> explorer::Program {
    let build = Build {
        cpus: plan.cpus,
        tags: 1,
        switches: Switches::DEFAULT,
        walkers: program.races(),
        pages: &[WINDOW + 11 * PAGE, WINDOW + 12 * PAGE],
        crossings: false,
        large_pages: false,
        code: &[],
        sampled: None,
        fault: None,
        kernel_mistake: None,
        remote: Scenario::BASE.remote,
        hypervisor: Scenario::BASE.hypervisor,
        device: &[],
        mistake: None,
        forgotten: Scenario::BASE.forgotten,
    };
    memory::make_mistake(None);
    let machine = SimulatedEnvironment::new(build);
    let first = machine.new_space();
    let steps = program.steps().count();
    let notes = Rc::new(RefCell::new(Notes {
        answers: vec![Answer::Odd("nothing".into()); steps],
        slots: [0; SLOTS as usize],
        spaces: BTreeMap::from([(0, first)]),
        objects: 0,
        ran_short: false,
        finals: Vec::new(),
    }));
    let done = Rc::new(AtomicU64::new(0));
    let cpus = (0..plan.cpus).map(|cpu| -> Box<dyn FnOnce()> {
        let stage = Stage {
            program: program.clone(),
            machine: machine.clone(),
            notes: notes.clone(),
            done: done.clone(),
            plan: plan.clone(),
        };
        Box::new(move || stage.run(cpu))
    });
    let cpus = cpus.collect();
    let stage = Stage { program: program.clone(), machine, notes, done, plan: plan.clone() };
    let traces = traces.clone();
    let finally = Box::new(move || {
        let trace = explorer::as_cpu(0, || stage.look());
        if let Some(trace) = trace {
            traces.borrow_mut().insert((trace.answers, trace.finals.iter().map(fuzz::write_final).collect()));
        }
        stage.machine.finish()
    });
    explorer::Program { cpus, finally }
}

impl Stage {
    /// The program of one CPU.
    fn run(&self, cpu: usize) {
        let mut before = 0;
        for (number, round) in self.program.rounds.iter().enumerate() {
            let first = before;
            before += round.len();
            let own: Vec<usize> =
                (0..round.len()).filter(|step| self.plan.places[number][*step] == cpu).collect();
            if own.is_empty() {
                continue;
            }
            let has_space = self.machine.has_loaded();
            if has_space && number % 3 == 1 {
                self.machine.go_lazy();
            } else if has_space && number % 5 == 2 {
                self.machine.leave();
            }
            while self.done.load(Acquire) < first as u64 {
                explorer::wait();
            }
            for step in own {
                let answer = self.make(&round[step]);
                self.notes.borrow_mut().answers[first + step] = answer;
                self.done.fetch_add(1, Release);
            }
        }
    }

    fn make(&self, step: &Step) -> Answer {
        let process = self.plan.processes[&step.actor];
        let Some(number) = self.notes.borrow().spaces.get(&process).copied() else {
            return Answer::Odd("no-space".into());
        };
        self.machine.activate(number);
        let space = self.machine.space(number);
        let answer = self.answer(step, process, &space);
        if self.machine.frames().statistics().free < FEW_FRAMES {
            self.notes.borrow_mut().ran_short = true;
        }
        answer
    }

    fn answer(&self, step: &Step, process: u8, space: &Arc<SimulatedSpace>) -> Answer {
        match step.call {
            Call::Load { at } => access(self.machine.load(self.resolve(at))),
            Call::Store { at, value } => {
                self.machine.store(self.resolve(at), value).map_or_else(fault, |()| Answer::Done)
            }
            Call::Fork { child } => {
                let whole = range(0, USER_END);
                // From shared memory, and from what the child does not get, fork takes nothing away: what is cached from before stays right.
                let not_copied = AreaFlags::WIPED_ON_FORK | AreaFlags::NOT_FORKED;
                let is_kept = space
                    .snapshot()
                    .iter()
                    .any(|area| area.object.is_some() || area.flags.intersects(not_copied));
                let promise = if is_kept { Promise::Agreement } else { Promise::Protection };
                let copy = self.machine.call("fork", space, whole, promise, || space.fork());
                let Ok(copy) = copy else { return Answer::Error(12) };
                let number = self.machine.adopt(copy);
                self.notes.borrow_mut().spaces.insert(child, number);
                Answer::Done
            }
            Call::Exit { .. } => {
                if process == step.actor {
                    let whole = range(0, USER_END);
                    self.machine.call("exit", space, whole, Promise::Removal, || space.teardown_user());
                    self.machine.leave();
                    self.notes.borrow_mut().spaces.remove(&process);
                }
                Answer::Done
            }
            Call::Wait { child } => {
                let exit = self.program.steps().find_map(|step| match step.call {
                    Call::Exit { status } if step.actor == child => Some(u64::from(status)),
                    _ => None,
                });
                exit.map_or_else(|| Answer::Odd("no-exit".into()), Answer::Number)
            }
            Call::Hop { .. } => Answer::Done,
            Call::Incore { at, length } => incore(space, self.resolve(at), length),
            _ => self.change(&step.call, space),
        }
    }

    /// The calls that change mappings.
    fn change(&self, call: &Call, space: &Arc<SimulatedSpace>) -> Answer {
        let none = |result: Result<(), Error>| result.map_or_else(error, |()| Answer::Done);
        match *call {
            Call::Map { at, length, rights, flags, offset, slot } => {
                let at = self.resolve(at);
                let concerned = range(at, length);
                let numbers = [at, length, rights, flags, offset];
                let zeroes = |size| self.zeroes(size);
                let work = || space.mmap_anonymous(numbers, zeroes);
                let placed = self.machine.call("mmap", space, concerned, Promise::Agreement, work);
                self.placed(placed, at, Answer::There, at, slot)
            }
            Call::Unmap { at, length } => {
                let at = self.resolve(at);
                let promise =
                    if PageRange::new(at, length).is_ok() { Promise::Removal } else { Promise::Agreement };
                none(
                    self.machine
                        .call("munmap", space, range(at, length), promise, || space.munmap(at, length)),
                )
            }
            Call::Protect { at, length, rights } => {
                let at = self.resolve(at);
                let work = || space.mprotect(at, length, rights, -1);
                none(self.machine.call("mprotect", space, range(at, length), Promise::Agreement, work))
            }
            Call::Remap { at, old, new, flags, to, slot } => {
                let (at, to) = (self.resolve(at), self.resolve(to));
                let concerned = range(at, old.max(new));
                let work = || space.mremap([at, old, new, flags, to]);
                let placed = self.machine.call("mremap", space, concerned, Promise::Agreement, work);
                self.placed(placed, at, Answer::Same, to, slot)
            }
            Call::Advise { at, length, advice } => {
                let at = self.resolve(at);
                let work = || space.madvise(at, length, advice);
                none(self.machine.call("madvise", space, range(at, length), Promise::Agreement, work))
            }
            _ => Answer::Odd("no-call".into()),
        }
    }

    fn zeroes(&self, size: u64) -> Arc<dyn Backing<SimulatedEnvironment>> {
        let mut notes = self.notes.borrow_mut();
        notes.objects += 1;
        let identity = Identity { device: 1, inode: notes.objects };
        Arc::new(MemoryObject::new(&self.machine, identity, String::from("zeroes"), size))
    }

    fn resolve(&self, address: Address) -> u64 {
        match address {
            Address::Window(page, bytes) => WINDOW + page * PAGE + bytes,
            Address::Plain(number) => number,
            Address::Block(slot, page, bytes) => {
                let start = match self.notes.borrow().slots[usize::from(slot)] {
                    0 => fuzz::NOWHERE,
                    start => start,
                };
                start + page * PAGE + bytes
            }
        }
    }

    /// Says where a mapping is, as the guests' program does.
    fn placed(&self, result: Result<u64, Error>, at: u64, same: Answer, to: u64, slot: u8) -> Answer {
        match result {
            Err(refused) => error(refused),
            Ok(address) if (WINDOW..WINDOW + WINDOW_PAGES * PAGE).contains(&address) => {
                Answer::At((address - WINDOW) / PAGE)
            }
            Ok(address) if address == at => same,
            Ok(address) if address == to => Answer::There,
            Ok(address) => {
                self.notes.borrow_mut().slots[usize::from(slot)] = address;
                Answer::Chosen
            }
        }
    }

    /// What the processes that are left look like, after the run.
    fn look(&self) -> Option<Trace> {
        let spaces = self.notes.borrow().spaces.clone();
        for (actor, number) in spaces {
            let space = self.machine.space(number);
            let mut end = Final { actor, ..Final::default() };
            for area in space.snapshot() {
                let first = area.range.start();
                for page in (first..area.range.end()).step_by(PAGE as usize) {
                    if (WINDOW..WINDOW + WINDOW_PAGES * PAGE).contains(&page) {
                        let shared = area.object.as_ref().map(|_| (area.offset + page - first) / PAGE);
                        let rights = u64::from((area.rights & Rights::all()).bits());
                        end.areas.insert((page - WINDOW) / PAGE, Look { rights, shared });
                    }
                }
            }
            self.machine.activate(number);
            for page in 0..2 * fuzz::BOUNDARY {
                if let Answer::Core(there) = incore(&space, WINDOW + page * PAGE, PAGE) {
                    end.core.insert(page, there == [true]);
                }
            }
            for page in 0..2 * fuzz::BOUNDARY {
                end.sweep.insert(page, access(self.machine.load(WINDOW + page * PAGE)));
            }
            self.notes.borrow_mut().finals.push(end);
        }
        let notes = self.notes.borrow();
        if notes.ran_short || self.machine.frames().statistics().free < FEW_FRAMES {
            return None;
        }
        Some(Trace { answers: notes.answers.clone(), finals: notes.finals.clone(), ..Trace::default() })
    }
}
