//! `ceasefire compare`: a program on Ceasefire and on Linux, side by side.
//!
//! Both sides get the same order: program, files, input, CPUs, memory, board. The runs take turns (ours, Linux, ours, …), so that
//! a host that grows busier slows both. A side that cannot run is absent, with the reason, and the other is still shown. Every
//! way out, Ctrl-C included, shows and saves what was measured until then.
//!
//! `trial` is one run, `agreement` whether all of them said the same, `table` and `times` what was counted, `ablation` and
//! `explanation` why; `comparison` holds it all together.

mod ablation;
mod agreement;
mod comparison;
mod explanation;
mod operation;
mod progress;
mod prose;
mod series;
mod table;
mod times;
mod trial;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::command_line::Compare;
use crate::failure::Failure;
use crate::page::{self, Titled};
use crate::result::ResultFile;
use crate::run;

pub(crate) use trial::Counts;

use comparison::Comparison;
use series::{Plan, Series};

/// The status when the runs end with different ones, so that there is no status of the program to pass on.
const DISAGREE: u8 = 5;

/// Compares, and ends with the program's status if all runs agree on it.
pub(crate) fn run(options: &Compare) -> Result<ExitCode, Failure> {
    let plan = Plan::of(options)?;
    let json = options.json.as_deref().map(ResultFile::create).transpose()?;
    let html = options.html.as_deref().map(ResultFile::create).transpose()?;
    let mut series = Series::new(plan, options)?;
    let stopped = series.measure().err();
    let absent = series.status_of_absence();
    let comparison = series.into_comparison(stopped.as_ref());

    if !options.quiet
        && let Some(text) = comparison.render()
    {
        // The program's own output was written; a closed terminal is no reason to change its status.
        let _ = io::stderr().write_all(text.as_bytes());
    }
    if !comparison.trials().is_empty() {
        save(&comparison, json, html)?;
    }
    match (stopped, absent) {
        (Some(failure), _) => Err(failure),
        (None, Some(status)) => Ok(ExitCode::from(status)),
        (None, None) => Ok(agreed_status(&comparison)),
    }
}

/// Writes what was measured to the files that were asked for.
fn save(comparison: &Comparison, json: Option<ResultFile>, html: Option<ResultFile>) -> Result<(), Failure> {
    let document = comparison.document();
    if let Some(json) = json {
        json.write(&document)?;
    }
    if let Some(html) = html {
        let titled = Titled { name: &comparison.program, document: &document };
        html.write_bytes(page::render(&[titled]).as_bytes())?;
    }
    Ok(())
}

fn agreed_status(comparison: &Comparison) -> ExitCode {
    agreement::of(&comparison.trials()).exit.map_or(ExitCode::from(DISAGREE), run::status)
}
