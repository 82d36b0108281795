//! Shows each mutant to the checkers, until one of them speaks.
//!
//! First comes the checker that noticed the mutant last time, then those that notice most mutants of this kind for their time. So most
//! mutants end after one short run. All mutants get a few seconds before any gets more: when the time is over, what is undecided
//! are those that cost most.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use protocol::mutants::{Kind, MutantResult, Verdict};

use crate::checker::{Checker, in_parallel, keep, promise};
use crate::equivalents::Equivalents;
use crate::mutant::Mutant;
use crate::report::{line, untried};
use crate::sound::Sound;

/// What earlier trials teach about the next.
#[derive(Default)]
struct Experience {
    /// By key: who noticed the mutant.
    killers: HashMap<String, String>,
    /// By kind and checker: how many mutants it has noticed in this run.
    kills: HashMap<(Kind, String), usize>,
}

impl Experience {
    fn read(file: &Path) -> Self {
        let killers = fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Experience { killers: killers.unwrap_or_default(), kills: HashMap::new() }
    }

    /// The checkers, the most promising first.
    fn ordered<'a>(&self, mutant: &Mutant, checkers: &'a [Checker], sound: &Sound) -> Vec<&'a Checker> {
        let promise = |checker: &Checker| {
            let kills = self.kills.get(&(mutant.kind, checker.name.clone())).copied().unwrap_or(0);
            (kills as f64 + 0.2) / (sound.expected(checker) + 0.05)
        };
        let last = self.killers.get(&mutant.key);
        let mut ordered: Vec<&Checker> = checkers.iter().collect();
        ordered.sort_by(|one, two| {
            let is_last = |checker: &Checker| last == Some(&checker.name);
            is_last(two).cmp(&is_last(one)).then(promise(two).total_cmp(&promise(one)))
        });
        ordered
    }

    fn learn(&mut self, mutant: &Mutant, checker: &Checker) {
        self.killers.insert(mutant.key.clone(), checker.name.clone());
        *self.kills.entry((mutant.kind, checker.name.clone())).or_insert(0) += 1;
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

/// The longest that a mutant may take, if the sound code takes so many seconds.
fn limit(sound: f64) -> Duration {
    Duration::from_secs_f64(10.0 + 10.0 * sound)
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

impl Trial<'_> {
    /// Tries all mutants, and tells how it goes.
    pub(crate) fn run(&self, mutants: &[&Mutant]) -> Result<Vec<MutantResult>, String> {
        let experience = Mutex::new(Experience::read(&self.killers()));
        let candidates: Vec<_> = mutants
            .iter()
            .map(|&mutant| Mutex::new(Candidate { mutant, result: untried(mutant), shown: HashSet::new() }))
            .collect();
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
        }
        let results =
            candidates.into_iter().map(|candidate| candidate.into_inner().expect("no worker panics"));
        Ok(results.map(|candidate| candidate.result).collect())
    }

    fn killers(&self) -> PathBuf {
        self.folder.join("killers.json")
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Shows a mutant to checkers that have not seen it, for so many seconds.
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
            let sound = self.sound.seconds(checker, log)?;
            let run = checker.run(mutant.number, limit(sound), log)?;
            result.seconds += run.seconds;
            shown.insert(checker.name.clone());
            if let Some(finding) = run.finding {
                let mut experience = experience.lock().expect("no worker panics");
                experience.learn(mutant, checker);
                keep(&self.killers(), &experience.killers)?;
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
