//! Shows each mutant to the checkers that come by it, until one of them speaks.
//!
//! First comes the checker that noticed the mutant last time, then those that have noticed most of its function and of its kind for
//! their time, and
//! those that are named after its file; among equals the quickest. So most mutants end after one short run. All mutants get a few seconds before any gets
//! more: when the time is over, what is undecided are those that cost most.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use protocol::mutants::{Kind, MutantResult, Verdict};

use crate::checker::{Checker, Limit, in_parallel, keep, promise};
use crate::equivalents::Equivalents;
use crate::mutant::Mutant;
use crate::report::{line, untried};
use crate::sound::Sound;

/// What earlier trials teach about the next.
#[derive(Default)]
struct Experience {
    /// By key: who noticed the mutant.
    killers: HashMap<String, String>,
    /// By checker and file with function: how many mutants of it the checker has noticed in this run.
    in_function: HashMap<(String, String), usize>,
    /// By checker and kind.
    of_kind: HashMap<(String, Kind), usize>,
}

impl Experience {
    fn read(file: &Path) -> Self {
        let killers = fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Experience { killers: killers.unwrap_or_default(), ..Experience::default() }
    }

    /// The checkers, the most promising first.
    fn ordered<'a>(&self, mutant: &Mutant, checkers: &'a [Checker], sound: &Sound) -> Vec<&'a Checker> {
        let promise = |checker: &Checker| {
            let name = || checker.name.clone();
            let near = self.in_function.get(&(name(), mutant.function().into())).copied().unwrap_or(0);
            let alike = self.of_kind.get(&(name(), mutant.kind)).copied().unwrap_or(0);
            // A test that is named after the file is made for it.
            let named = f64::from(u8::from(checker.name.contains(mutant.file.trim_end_matches(".rs"))));
            (near as f64 + 0.1 * alike as f64 + named + 0.2) / (sound.expected(checker) + 0.01)
        };
        let last = self.killers.get(&mutant.key);
        let mut ordered: Vec<_> = checkers
            .iter()
            .filter(|checker| checker.sees(mutant.kind))
            .map(|checker| (last == Some(&checker.name), promise(checker), checker))
            .collect();
        ordered.sort_by(|one, two| two.0.cmp(&one.0).then(two.1.total_cmp(&one.1)));
        ordered.into_iter().map(|(_, _, checker)| checker).collect()
    }

    fn learn(&mut self, mutant: &Mutant, checker: &Checker) {
        let name = || checker.name.clone();
        self.killers.insert(mutant.key.clone(), name());
        *self.in_function.entry((name(), mutant.function().into())).or_insert(0) += 1;
        *self.of_kind.entry((name(), mutant.kind)).or_insert(0) += 1;
    }
}

/// How mutants are tried.
pub(crate) struct Trial<'a> {
    pub(crate) checkers: &'a [Checker],
    pub(crate) sound: &'a Sound,
    pub(crate) equivalents: &'a Equivalents,
    /// How many mutants are tried at once.
    pub(crate) jobs: usize,
    /// Those that are argued to do nothing wrong are shown to all checkers too.
    pub(crate) deep: bool,
    /// No checker begins after this.
    pub(crate) end: Option<Instant>,
    /// For what is kept, and what checkers print.
    pub(crate) folder: &'a Path,
}

/// So many seconds of checkers see a mutant that is argued to do nothing wrong, the most promising first.
const FOR_THE_ARGUED: f64 = 5.0;

/// What became of a mutant so far.
struct Candidate<'a> {
    mutant: &'a Mutant,
    result: MutantResult,
    /// The checkers that did not notice it.
    shown: HashSet<String>,
}

/// So many seconds of checkers see a mutant before the next one gets its turn.
const TURNS: [f64; 3] = [2.0, 10.0, f64::INFINITY];

/// With so many mutants, all checkers will be needed.
const MANY: usize = 50;

impl Trial<'_> {
    /// Tries all mutants, and tells how it goes.
    pub(crate) fn run(&self, mutants: &[&Mutant]) -> Result<Vec<MutantResult>, String> {
        let experience = Mutex::new(Experience::read(&self.killers()));
        let candidates: Vec<_> = mutants
            .iter()
            .map(|&mutant| Mutex::new(Candidate { mutant, result: untried(mutant), shown: HashSet::new() }))
            .collect();
        if mutants.len() >= MANY {
            self.meet_checkers()?;
        }
        for turn in TURNS {
            let next = AtomicUsize::new(0);
            in_parallel(self.jobs, |worker| {
                let log = self.folder.join(format!("mutant-{worker}.log"));
                while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut candidate = candidate.lock().expect("no worker panics");
                    if candidate.result.verdict == Verdict::Undecided && !self.is_over() {
                        self.turn(&mut candidate, turn, &experience, &log)?;
                        println!("{}", line(&candidate.result));
                    }
                }
                Ok(())
            })?;
            self.sound.keep()?;
            keep(&self.killers(), &experience.lock().expect("no worker panics").killers)?;
        }
        let results =
            candidates.into_iter().map(|candidate| candidate.into_inner().expect("no worker panics"));
        Ok(results.map(|candidate| candidate.result).collect())
    }

    /// Runs all checkers on the sound code, the slowest first.
    fn meet_checkers(&self) -> Result<(), String> {
        let mut checkers: Vec<&Checker> = self.checkers.iter().collect();
        checkers.sort_by(|one, two| self.sound.expected(two).total_cmp(&self.sound.expected(one)));
        let next = AtomicUsize::new(0);
        in_parallel(self.jobs, |worker| {
            let log = self.folder.join(format!("mutant-{worker}.log"));
            while let Some(checker) = checkers.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.sound.known(checker, &log)?;
            }
            Ok(())
        })?;
        self.sound.keep()
    }

    fn killers(&self) -> PathBuf {
        self.folder.join("killers.json")
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Shows a mutant to checkers that have not seen it and come by it, for so many seconds.
    fn turn(
        &self,
        candidate: &mut Candidate,
        seconds: f64,
        experience: &Mutex<Experience>,
        log: &Path,
    ) -> Result<(), String> {
        let Candidate { mutant, result, shown } = candidate;
        let mut ordered =
            experience.lock().expect("no worker panics").ordered(mutant, self.checkers, self.sound);
        ordered.retain(|checker| !shown.contains(&checker.name));
        let argument = self.equivalents.argument(mutant);
        let begun = result.seconds;
        for checker in ordered {
            if argument.is_some() && !self.deep && result.seconds > FOR_THE_ARGUED {
                break;
            }
            if result.seconds - begun > seconds || self.is_over() {
                return Ok(());
            }
            let known = self.sound.known(checker, log)?;
            shown.insert(checker.name.clone());
            if !known.comes_by(mutant.number) {
                continue;
            }
            let run = checker.run(mutant.number, Limit::beyond(known.seconds), log)?;
            result.seconds += run.seconds;
            result.seen_by += 1;
            if let Some(finding) = run.finding {
                experience.lock().expect("no worker panics").learn(mutant, checker);
                result.verdict = Verdict::Killed;
                result.checker = Some(checker.name.clone());
                result.promise = promise(&finding).map(str::to_owned);
                result.finding = Some(finding);
                return Ok(());
            }
        }
        result.verdict = if argument.is_some() { Verdict::Equivalent } else { Verdict::Survived };
        result.because = argument;
        Ok(())
    }
}
