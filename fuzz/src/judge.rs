//! Whether a trace can be: for each round, some order of its calls gives the answers that were observed.
//!
//! All worlds that explain the rounds so far are kept. Each call of a round happens at one instant between the round's begin and its
//! end, so a round of several calls has as many orders as its calls have; a world goes on for each order whose answers are the
//! observed ones. When none is left, the round cannot be explained. At the end some world must look like what was found. Only bringing pages in
//! is no such instant: systems do it after the call's own work, without its lock, so that another call can come between.

use crate::model::Source;
use crate::model::{Model, Refusal, in_window};
use crate::program::{Program, Step};
use crate::trace::{Answer, Final, Look, Trace, swept};

/// What a trace came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be. These are the reasons for which other answers could have been, too.
    Explained(Vec<&'static str>),
    /// It cannot.
    Wrong(Difference),
    /// The program leaves what the model knows.
    Wild,
}

/// Where a trace leaves what can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The round, or none for what was found in the end.
    pub round: Option<usize>,
    /// The steps of the round before this, in the text's order; for the end, the number of steps.
    pub first_step: usize,
    /// What could be, in words.
    pub expected: String,
    /// What was observed, in words.
    pub observed: String,
}

/// At most so many worlds are kept.
const MOST_WORLDS: usize = 64;

/// Judges a trace.
pub fn judge(program: &Program, trace: &Trace) -> Verdict {
    let mut worlds = vec![Model::new(program)];
    let mut first_step = 0;
    for (number, round) in program.rounds.iter().enumerate() {
        let Some(answers) = trace.answers.get(first_step..first_step + round.len()) else {
            return wrong(Some(number), first_step, "an answer to every step", "fewer");
        };
        match next_worlds(&worlds, round, first_step, answers) {
            Ok(next) => worlds = next,
            Err(Refusal::Wild) => return Verdict::Wild,
            Err(Refusal::Expected(expected)) => {
                let words =
                    |answers: &[Answer]| answers.iter().map(Answer::words).collect::<Vec<_>>().join(" or ");
                let expected =
                    if round.len() == 1 { words(&expected) } else { "answers that some order gives".into() };
                let observed: Vec<_> = answers.iter().map(Answer::words).collect();
                return wrong(Some(number), first_step, &expected, &observed.join(", "));
            }
        }
        first_step += round.len();
    }
    // Told is what the world says that agrees longest: another one may differ sooner because it took another order.
    let mut furthest = (0, (String::new(), String::new()));
    for world in &mut worlds {
        let mut agreed = 0;
        match compare_end(world, trace, &mut agreed) {
            Ok(()) => {
                return Verdict::Explained(world.loosened.iter().copied().collect());
            }
            Err(difference) if agreed >= furthest.0 => furthest = (agreed, difference),
            Err(_) => {}
        }
    }
    let (_, (expected, observed)) = furthest;
    wrong(None, first_step, &expected, &observed)
}

fn wrong(round: Option<usize>, first_step: usize, expected: &str, observed: &str) -> Verdict {
    Verdict::Wrong(Difference { round, first_step, expected: expected.into(), observed: observed.into() })
}

fn next_worlds(
    worlds: &[Model],
    round: &[Step],
    first_step: usize,
    answers: &[Answer],
) -> Result<Vec<Model>, Refusal> {
    let mut next: Vec<Model> = Vec::new();
    let mut expected = Vec::new();
    for world in worlds {
        let mut order = Vec::new();
        let mut world = world.clone();
        world.step = first_step as u64;
        explore(&world, round, answers, &mut order, &mut next, &mut expected)?;
    }
    expected.sort();
    expected.dedup();
    if next.is_empty() { Err(Refusal::Expected(expected)) } else { Ok(next) }
}

/// Tries every order of the steps that are left.
fn explore(
    world: &Model,
    round: &[Step],
    answers: &[Answer],
    done: &mut Vec<usize>,
    next: &mut Vec<Model>,
    expected: &mut Vec<Answer>,
) -> Result<(), Refusal> {
    if done.len() == round.len() {
        let mut world = world.clone();
        if round.len() > 1 && round.iter().any(|step| step.call.brings_in()) {
            world.doubt_presence();
        }
        if next.len() < MOST_WORLDS && !next.contains(&world) {
            next.push(world);
        }
        return Ok(());
    }
    for index in 0..round.len() {
        if done.contains(&index) {
            continue;
        }
        let mut after = world.clone();
        after.step += index as u64;
        let made = after.make(round[index].actor, &round[index].call, Some(&answers[index]));
        after.step = world.step;
        match made {
            Ok(_) => {
                done.push(index);
                explore(&after, round, answers, done, next, expected)?;
                done.pop();
            }
            Err(Refusal::Wild) => return Err(Refusal::Wild),
            Err(Refusal::Expected(answers)) => expected.extend(answers),
        }
    }
    Ok(())
}

/// Whether a world looks like what the processes said in the end; else what was expected and what was observed. Counts the looks that agreed.
fn compare_end(world: &mut Model, trace: &Trace, agreed: &mut usize) -> Result<(), (String, String)> {
    let processes: Vec<(u8, u8)> = world.processes().collect();
    let said: Vec<u8> = trace.finals.iter().map(|end| end.actor).collect();
    let expected: Vec<u8> = processes.iter().map(|(_, actor)| *actor).collect();
    if said != expected {
        return Err((format!("processes {expected:?} in the end"), format!("{said:?}")));
    }
    for ((process, actor), end) in processes.iter().zip(&trace.finals) {
        compare_areas(world, *process, end)?;
        *agreed += 1;
        compare_core(world, *process, end)?;
        *agreed += 1;
        for (page, answer) in &end.sweep {
            let address = crate::program::Address::Window(*page, 0);
            let load = crate::program::Call::Load { at: address };
            if let Err(Refusal::Expected(could)) = world.make(*actor, &load, Some(answer)) {
                let could: Vec<_> = could.iter().map(Answer::words).collect();
                let place = format!("at @{page} of process {process} in the end");
                return Err((format!("{} {place}", could.join(" or ")), answer.words()));
            }
            *agreed += 1;
        }
    }
    Ok(())
}

fn compare_areas(world: &Model, process: u8, end: &Final) -> Result<(), (String, String)> {
    let expected = areas(world, process);
    let pages = expected.keys().chain(end.areas.keys());
    let differs = pages.min_by_key(|page| (expected.get(*page) == end.areas.get(*page), **page));
    match differs.filter(|page| expected.get(*page) != end.areas.get(*page)) {
        None => Ok(()),
        Some(page) => {
            let words = |look: Option<&Look>| look.map_or("nothing".to_owned(), |look| format!("{look:?}"));
            let place = format!("at @{page} of process {process} in the end");
            Err((format!("{} {place}", words(expected.get(page))), words(end.areas.get(page))))
        }
    }
}

fn areas(world: &Model, process: u8) -> std::collections::BTreeMap<u64, Look> {
    let space = &world.spaces[&process];
    let look = |page: &crate::model::Page| Look {
        rights: page.rights,
        shared: match page.source {
            Source::Private => None,
            Source::Shared { index, .. } => Some(index),
        },
    };
    space.pages.iter().filter_map(|(number, page)| Some((in_window(*number)?, look(page)))).collect()
}

fn compare_core(world: &Model, process: u8, end: &Final) -> Result<(), (String, String)> {
    let space = &world.spaces[&process];
    for page in swept() {
        let mapped = space.pages.get(&(crate::program::WINDOW / crate::program::PAGE + page));
        let expected = mapped.and_then(|page| world.presence(page));
        // While one process looks, another one may bring shared pages in.
        let is_shared = mapped.is_some_and(|page| page.source != Source::Private) && world.spaces.len() > 1;
        if let (Some(expected), Some(observed)) = (expected, end.core.get(&page))
            && expected != *observed
            && !is_shared
        {
            let words = |there: bool| if there { "in memory" } else { "not in memory" }.to_owned();
            let place = format!("{} at @{page} of process {process} in the end", words(expected));
            return Err((place, words(*observed)));
        }
    }
    Ok(())
}

/// Whether a program stays within what the model knows, whichever order its rounds take; answers are the model's own.
pub fn is_tame(program: &Program) -> bool {
    let mut worlds = vec![Model::new(program)];
    let mut first_step = 0;
    for round in &program.rounds {
        let mut next = Vec::new();
        for world in &mut worlds {
            world.step = first_step;
            if !all_orders(world, round, &mut Vec::new(), &mut next) {
                return false;
            }
        }
        worlds = next;
        first_step += round.len() as u64;
    }
    true
}

fn all_orders(world: &Model, round: &[Step], done: &mut Vec<usize>, next: &mut Vec<Model>) -> bool {
    if done.len() == round.len() {
        if next.len() < MOST_WORLDS && !next.contains(world) {
            next.push(world.clone());
        }
        return true;
    }
    (0..round.len()).all(|index| {
        if done.contains(&index) {
            return true;
        }
        let mut after = world.clone();
        after.step += index as u64;
        if settle(&mut after, &round[index]).is_none() {
            return false;
        }
        after.step = world.step;
        done.push(index);
        let is_tame = all_orders(&after, round, done, next);
        done.pop();
        is_tame
    })
}

/// Makes a step with the likeliest answer.
pub(crate) fn settle(world: &mut Model, step: &Step) -> Option<Answer> {
    let before = world.clone();
    match world.make(step.actor, &step.call, None) {
        Ok(answer) => Some(answer),
        Err(Refusal::Wild) => None,
        Err(Refusal::Expected(could)) => {
            *world = before;
            world.make(step.actor, &step.call, could.first()).ok()
        }
    }
}
