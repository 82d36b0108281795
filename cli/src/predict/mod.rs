//! `ceasefire predict`: interrupts and times by a simulation, on machines that nobody here has.
//!
//! The model is `machine::cost`. Here: what is asked for (`selection.rs`), the runs, side by side on the host's cores, what becomes of them
//! (`document.rs`), and how people see it (`table.rs`, `crate::page::prediction`). Predictions have a form of their own, so that no tool takes
//! them for measurements.

pub(crate) mod calibration;
mod document;
mod prose;
mod selection;
mod table;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use machine::cost::{Case, Outcome, Setup, simulate};

use crate::command_line::Predict;
use crate::failure::Failure;
use crate::page;
use crate::result::ResultFile;

pub(crate) use document::{Document, Record, Series, System, is_prediction, read};
use selection::Selection;
pub(crate) use selection::{Cpus, parse_cpus};

/// Predicts what was asked for.
///
/// # Errors
/// A usage failure when a word makes no sense or a file has no place; nothing is simulated then.
pub(crate) fn run(options: &Predict) -> Result<ExitCode, Failure> {
    if let Some(help) = selection::help(options) {
        print!("{help}");
        return Ok(ExitCode::SUCCESS);
    }
    let selection = Selection::new(options)?;
    let create = |path: &Option<std::path::PathBuf>| path.as_deref().map(ResultFile::create).transpose();
    let (json, html, prose) = (create(&options.json)?, create(&options.html)?, create(&options.table)?);
    let records = simulate_all(&selection);
    let document = Document::new(&selection, records);
    print!("{}", table::render(&document));
    if let Some(file) = json {
        file.write_form(&document)?;
    }
    if let Some(file) = html {
        file.write_bytes(page::render_prediction(&document).as_bytes())?;
        println!("\nThe page: {}", options.html.as_deref().unwrap_or_else(|| "".as_ref()).display());
    }
    if let Some(file) = prose {
        file.write_bytes(prose::render(&document).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs every case under every policy, as many at once as the host has cores. The order of the results is that of the tables.
fn simulate_all(selection: &Selection) -> Vec<Record> {
    let jobs: Vec<(&Case, usize)> = selection
        .cases
        .iter()
        .flat_map(|case| (0..selection.policies.len()).map(move |policy| (case, policy)))
        .collect();
    let bar = indicatif::ProgressBar::new(jobs.len() as u64);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, policy)) = jobs.get(index).copied() else { break };
            let setup = Setup {
                parameters: &selection.parameters,
                policy: &selection.policies[policy],
                case,
                seed: selection.seed,
                operations: None,
            };
            let outcome = simulate(&setup);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, outcome));
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| {
            scope.spawn(work);
        });
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    let record = |(index, outcome): (usize, Outcome)| {
        let (case, policy) = jobs[index];
        Record::new(case, &selection.policies[policy], selection.seed, &outcome)
    };
    done.into_iter().map(record).collect()
}
