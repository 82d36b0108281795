//! What the checkers say of the code as it is: nothing, and how long they take for that.
//!
//! A finding about a mutant counts only if the same checker finds nothing in the sound code. There are many checkers, and most mutants are
//! noticed by few of them, so each is asked when it is first needed, and not again before it is built anew. Until then its
//! time is what an earlier build took.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checker::{Checker, keep};

/// What is known of a checker.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    /// The program that was run.
    program: String,
    seconds: f64,
}

/// What is known of all of them, by name.
#[derive(Debug)]
pub(crate) struct Sound {
    file: PathBuf,
    known: Mutex<HashMap<String, Known>>,
}

/// As long as the sound code may take.
const PATIENCE: Duration = Duration::from_secs(600);

impl Sound {
    /// What earlier runs have left in `folder`.
    pub(crate) fn read(folder: &Path) -> Self {
        let file = folder.join("sound.json");
        let known = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Sound { file, known: Mutex::new(known.unwrap_or_default()) }
    }

    /// How long a checker probably takes. Of those that never ran the explorer's scenarios are the quickest as a rule.
    pub(crate) fn expected(&self, checker: &Checker) -> f64 {
        let known = self.known.lock().expect("no worker panics");
        let unknown = if checker.name.starts_with("explorer ") { 1.0 } else { 5.0 };
        known.get(&checker.name).map_or(unknown, |known| known.seconds)
    }

    /// How long a checker takes to find nothing. It runs, unless this very program has done so before.
    pub(crate) fn seconds(&self, checker: &Checker, log: &Path) -> Result<f64, String> {
        let program = checker.identity();
        let known = self.known.lock().expect("no worker panics").get(&checker.name).cloned();
        if let Some(known) = known.filter(|known| known.program == program) {
            return Ok(known.seconds);
        }
        let run = checker.run(0, PATIENCE, log)?;
        if let Some(finding) = run.finding {
            return Err(format!("{} fails without any mutant: {finding}", checker.name));
        }
        let mut known = self.known.lock().expect("no worker panics");
        known.insert(checker.name.clone(), Known { program, seconds: run.seconds });
        keep(&self.file, &*known)?;
        Ok(run.seconds)
    }
}
