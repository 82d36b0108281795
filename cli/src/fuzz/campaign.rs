//! Pack after pack until time or programs are up: made, run on every system, judged; what is new is shrunk and shown at once.

use std::time::Instant;

use fuzz::{Difference, Program, Taste, Trace, Verdict, generate, judge};

use super::Plan;
use super::known::{self, Found};
use super::shrinking;
use super::summary::{Finding, Summary};
use super::systems::{Executor, Run, Systems};
use crate::failure::Failure;

/// Programs in a pack: a guest's start is paid once for so many.
const PACK: u64 = 250;
/// Guests alternate between these numbers of CPUs.
const CPUS: [u32; 2] = [2, 4];

/// A series of packs.
pub(crate) struct Campaign<'a> {
    plan: &'a Plan<'a>,
    systems: Systems,
    deadline: Option<Instant>,
    summary: Summary,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(plan: &'a Plan<'a>, systems: Systems, deadline: Option<Instant>) -> Self {
        let summary = Summary::new(plan.seed, systems.names());
        Campaign { plan, systems, deadline, summary }
    }

    /// Runs it.
    pub(crate) fn run(mut self) -> Result<Summary, Failure> {
        let started = Instant::now();
        let (part, parts) = self.plan.shard;
        let mut number = 0;
        while self.goes_on() {
            let left = self.plan.programs.map_or(PACK, |wanted| wanted - self.summary.programs);
            let pack: Vec<u64> = (number..)
                .filter(|number| number % parts == part - 1)
                .take(left.min(PACK) as usize)
                .collect();
            number = pack.last().map_or(number, |last| last + 1);
            let programs: Vec<Program> = pack.iter().map(|number| program(self.plan.seed, *number)).collect();
            let cpus = self.plan.cpus.unwrap_or(CPUS[(number / PACK) as usize % CPUS.len()]);
            let runs = self.systems.run(&programs, cpus, self.plan.seed)?;
            self.take_in(&programs, &runs, cpus)?;
            self.summary.seconds = started.elapsed().as_secs_f64();
            eprintln!("{}", self.summary.line());
        }
        Ok(self.summary)
    }

    fn goes_on(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
            && self.plan.programs.is_none_or(|wanted| self.summary.programs < wanted)
    }

    fn take_in(&mut self, programs: &[Program], runs: &[Run], cpus: u32) -> Result<(), Failure> {
        for run in runs {
            self.summary.boots += run.boots;
            self.summary.schedules += run.schedules;
        }
        for program in programs {
            self.summary.count(program);
            for (index, run) in runs.iter().enumerate() {
                let system = self.systems.executors[index].name();
                for trace in run.traces.get(&program.name).into_iter().flatten() {
                    self.summary.count_run(system);
                    let Some(finding) = examine(program, trace, system, &mut self.summary) else { continue };
                    if self.summary.add(finding) {
                        self.show_and_keep(program, index, cpus)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Shrinks the newest finding, shows it, and keeps its program.
    fn show_and_keep(&mut self, program: &Program, executor: usize, cpus: u32) -> Result<(), Failure> {
        let executor = &self.systems.executors[executor];
        let Some(finding) = self.summary.newest() else { return Ok(()) };
        let small = shrinking::shrink(
            program,
            executor,
            &self.systems.interpreter,
            &finding.class,
            cpus,
            self.deadline,
        )?;
        let runs = self.systems.run(std::slice::from_ref(&small), cpus, self.plan.seed)?;
        let told = tell(&small, &self.systems, &runs);
        eprintln!("\n{}\n{told}", finding.class);
        finding.program = small.to_string();
        if let Some(folder) = self.plan.keep {
            let file = folder.join(format!("{}.txt", small.name));
            let text = format!("# {}\n{}{small}", finding.class, commented(&told));
            std::fs::write(&file, text)
                .map_err(|error| Failure::host(format!("write {}", file.display()), error))?;
        }
        Ok(())
    }
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

/// The program of a number: most by one thread or two in turn, a third with races, some with mappings of whole tables.
fn program(seed: u64, number: u64) -> Program {
    let taste = Taste {
        races: matches!(number % 6, 2 | 4 | 5),
        tables: number % 12 == 3 || number % 12 == 5,
        rounds: 16,
    };
    generate(number.to_string(), seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number, taste)
}

/// Judges a trace; what cannot be explained by the model.
pub(super) fn examine(
    program: &Program,
    trace: &Trace,
    system: &str,
    summary: &mut Summary,
) -> Option<Finding> {
    match verdict(program, trace) {
        Verdict::Explained(why) => {
            summary.loosen(&why);
            None
        }
        Verdict::Wild => {
            summary.wild += 1;
            None
        }
        Verdict::Wrong(difference) => {
            Some(Finding::new(program, classify(program, system, &difference), system))
        }
    }
}

/// The model's verdict, after what the executor's own watch found.
pub(super) fn verdict(program: &Program, trace: &Trace) -> Verdict {
    match &trace.found {
        Some(found) => Verdict::Wrong(Difference {
            round: Some(usize::MAX),
            first_step: trace.answers.len(),
            expected: "nothing to report".into(),
            observed: found.clone(),
        }),
        None => judge(program, trace),
    }
}

/// What kind of difference it is: the same for programs that differ in the same way. And whether it is a known one.
pub(super) fn classify(
    program: &Program,
    system: &str,
    difference: &Difference,
) -> (String, Option<&'static known::Known>) {
    let round = difference.round.and_then(|round| program.rounds.get(round));
    let found = Found { system, observed: &difference.observed };
    let what = match round {
        Some(round) => {
            let mut names: Vec<_> = round.iter().map(|step| step.call.name()).collect();
            names.sort_unstable();
            names.join(" beside ")
        }
        None if difference.round.is_some() => "the run".into(),
        None => "the end".into(),
    };
    let plain = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        let letters = line.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter });
        letters.collect::<String>()
    };
    let races = round.is_some_and(|round| round.len() > 1);
    let observed = if races { "answers that no order gives".into() } else { plain(&difference.observed) };
    let class = format!("{system}: {what}: {observed}, not {}", plain(&difference.expected));
    (class, known::find(&found))
}

/// The program with every system's answers beside it.
fn tell(program: &Program, systems: &Systems, runs: &[Run]) -> String {
    let names: Vec<&str> = systems.executors.iter().map(Executor::name).collect();
    let traces: Vec<Option<&Trace>> =
        runs.iter().map(|run| run.traces.get(&program.name).and_then(|all| all.first())).collect();
    let mut text =
        format!("{:<48} {}\n", "", names.iter().map(|name| format!("{name:<14}")).collect::<String>());
    let mut index = 0;
    for round in &program.rounds {
        for (number, step) in round.iter().enumerate() {
            let line = format!("{}{} {}", if number == 0 { "" } else { "& " }, step.actor, step.call);
            let answers = traces.iter().map(|trace| trace.and_then(|trace| trace.answers.get(index)));
            let answers =
                answers.map(|answer| format!("{:<14}", answer.map_or("-".into(), fuzz::Answer::words)));
            text.push_str(&format!("{line:<48} {}\n", answers.collect::<String>().trim_end()));
            index += 1;
        }
    }
    for (name, trace) in names.iter().zip(&traces) {
        let Some(trace) = trace else { continue };
        for end in &trace.finals {
            text.push_str(&format!("{name:<10} {}\n", fuzz::write_final(end)));
        }
        match verdict(program, trace) {
            Verdict::Wrong(difference) => {
                text.push_str(&format!("{name}: {}, not {}\n", difference.observed, difference.expected));
            }
            Verdict::Explained(_) => text.push_str(&format!("{name}: as it may be\n")),
            Verdict::Wild => text.push_str(&format!("{name}: not judged\n")),
        }
    }
    text
}

/// Runs given programs once on each system and tells what differs.
pub(crate) fn replay(programs: &[Program], systems: Systems, cpus: Option<u32>) -> Result<Summary, Failure> {
    let started = Instant::now();
    let mut summary = Summary::new(0, systems.names());
    let runs = systems.run(programs, cpus.unwrap_or(CPUS[0]), 1)?;
    for run in &runs {
        summary.boots += run.boots;
        summary.schedules += run.schedules;
    }
    for program in programs {
        summary.count(program);
        let mut is_worth_telling = programs.len() == 1;
        for (executor, run) in systems.executors.iter().zip(&runs) {
            for trace in run.traces.get(&program.name).into_iter().flatten() {
                summary.count_run(executor.name());
                if let Some(finding) = examine(program, trace, executor.name(), &mut summary) {
                    is_worth_telling |= summary.add(finding);
                }
            }
        }
        if is_worth_telling {
            println!("{}", tell(program, &systems, &runs));
        }
    }
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}
