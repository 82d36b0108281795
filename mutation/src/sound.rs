//! What the checkers say of the code as it is: nothing. How long they take for that, and which mutants they come by meanwhile.
//!
//! A finding about a mutant counts only if the same checker finds nothing in the sound code. There are many checkers, and most mutants are
//! noticed by few of them, so each is asked when it is first needed, and not again before it is built anew. A checker that does not come
//! by a mutant's place, or comes by where the question that it changes has the same answer, does with it what it does without.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::checker::{Checker, Limit, keep};

/// What is known of a checker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The program that was run.
    program: String,
    pub(crate) seconds: f64,
    /// The numbers of the mutants that it comes by.
    passed: BTreeSet<usize>,
}

impl Known {
    /// Whether a mutant makes any difference to it.
    pub(crate) fn comes_by(&self, number: usize) -> bool {
        self.passed.contains(&number)
    }
}

/// What is known of all of them.
#[derive(Debug)]
pub(crate) struct Sound {
    folder: PathBuf,
    /// By name. Whoever asks about a checker holds its lock until it is known.
    known: HashMap<String, Mutex<Option<Arc<Known>>>>,
    /// By name: what earlier builds of them took.
    before: HashMap<String, f64>,
}

/// As long as the sound code may take: ten minutes of work.
const PATIENCE: f64 = 60.0;

impl Sound {
    /// What earlier runs have left in `folder` about these checkers.
    pub(crate) fn read(folder: &Path, checkers: &[Checker]) -> Self {
        let written: HashMap<String, Known> = fs::read(folder.join("sound.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let known = checkers.iter().map(|checker| {
            let known = written.get(&checker.name).filter(|known| known.program == checker.identity());
            (checker.name.clone(), Mutex::new(known.cloned().map(Arc::new)))
        });
        let before = written.iter().map(|(name, known)| (name.clone(), known.seconds));
        Sound { folder: folder.to_path_buf(), known: known.collect(), before: before.collect() }
    }

    /// How long a checker probably takes. Of those that never ran, unit tests are the quickest as a rule.
    pub(crate) fn expected(&self, checker: &Checker) -> f64 {
        let unknown = if checker.is_of("units") { 0.01 } else { 1.0 };
        self.before.get(&checker.name).copied().unwrap_or(unknown)
    }

    /// What is known of a checker. It runs, unless this very program has done so before.
    pub(crate) fn known(&self, checker: &Checker, log: &Path) -> Result<Arc<Known>, String> {
        let mut known = self.known[&checker.name].lock().expect("no worker panics");
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let notes = log.with_extension("notes");
        let run = checker.note(Limit::beyond(PATIENCE), &notes, log)?;
        if let Some(finding) = run.finding {
            return Err(format!("{} fails without any mutant: {finding}", checker.name));
        }
        let text = fs::read_to_string(&notes).unwrap_or_default();
        let passed = text.lines().filter_map(|line| line.parse().ok()).collect();
        let learnt = Arc::new(Known { program: checker.identity(), seconds: run.seconds, passed });
        *known = Some(learnt.clone());
        Ok(learnt)
    }

    /// Writes down for the next run what is known now.
    pub(crate) fn keep(&self) -> Result<(), String> {
        let known: HashMap<_, _> = self
            .known
            .iter()
            .filter_map(|(name, known)| Some((name, known.lock().expect("no worker panics").clone()?)))
            .map(|(name, known)| (name, (*known).clone()))
            .collect();
        keep(&self.folder.join("sound.json"), &known)
    }
}
