//! Shows each mutant to the checkers, until one of them speaks.
//!
//! First comes the checker that noticed the mutant last time, then those that notice most mutants of this kind for their time. So most
//! mutants end after one short run, and only those that survive see all checkers.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::mutants::{Kind, MutantResult, Verdict};

use crate::checker::{Checker, in_parallel, keep, promise};
use crate::equivalents::Equivalents;
use crate::mutant::Mutant;
use crate::report::{line, untried};

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
    fn ordered<'a>(&self, mutant: &Mutant, checkers: &'a [Checker]) -> Vec<&'a Checker> {
        let promise = |checker: &Checker| {
            let kills = self.kills.get(&(mutant.kind, checker.name.clone())).copied().unwrap_or(0);
            (kills as f64 + 0.2) / (checker.seconds + 0.05)
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
    pub(crate) equivalents: &'a Equivalents,
    /// How many mutants are tried at once.
    pub(crate) jobs: usize,
    /// Those that are argued to do nothing wrong are shown to all checkers too.
    pub(crate) deep: bool,
    /// For what is kept, and what checkers print.
    pub(crate) folder: &'a Path,
}

/// So many seconds of checkers see a mutant that is argued to do nothing wrong, the most promising first.
const FOR_THE_ARGUED: f64 = 5.0;

impl Trial<'_> {
    /// Tries all mutants, and tells how it goes.
    pub(crate) fn run(&self, mutants: &[&Mutant]) -> Result<Vec<MutantResult>, String> {
        let experience = Mutex::new(Experience::read(&self.killers()));
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        in_parallel(self.jobs, |worker| {
            let log = self.folder.join(format!("mutant-{worker}.log"));
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(mutant) = mutants.get(index) else {
                    return Ok(());
                };
                let result = self.one(mutant, &experience, &log)?;
                println!("[{:>3}/{}] {}", index + 1, mutants.len(), line(&result));
                results.lock().expect("no worker panics").push(result);
            }
        })?;
        let mut results = results.into_inner().expect("no worker panics");
        results.sort_by_key(|result| result.number);
        Ok(results)
    }

    fn killers(&self) -> PathBuf {
        self.folder.join("killers.json")
    }

    fn one(
        &self,
        mutant: &Mutant,
        experience: &Mutex<Experience>,
        log: &Path,
    ) -> Result<MutantResult, String> {
        let ordered = experience.lock().expect("no worker panics").ordered(mutant, self.checkers);
        let mut result = untried(mutant);
        let argument = self.equivalents.argument(mutant);
        let mut seen = 0.0;
        for checker in ordered {
            if argument.is_some() && !self.deep && seen > FOR_THE_ARGUED {
                break;
            }
            let run = checker.run(mutant.number, log)?;
            result.seconds += run.seconds;
            seen += checker.seconds;
            if let Some(finding) = run.finding {
                let mut experience = experience.lock().expect("no worker panics");
                experience.learn(mutant, checker);
                keep(&self.killers(), &experience.killers)?;
                result.verdict = Verdict::Killed;
                result.checker = Some(checker.name.clone());
                result.promise = promise(&finding).map(str::to_owned);
                result.finding = Some(finding);
                return Ok(result);
            }
        }
        result.verdict = if argument.is_some() { Verdict::Equivalent } else { Verdict::Survived };
        result.because = argument;
        Ok(result)
    }
}
