//! `ceasefire fuzz`: programs of memory calls, made at random, on the simulated machine, on our kernel and on Linux.
//!
//! `fuzz/` makes programs and judges what was observed; `systems` runs packs of them; `campaign` goes on for as long as it was asked,
//! `shrinking` makes small what cannot be explained, `known` lists what can, and `summary` counts.

mod campaign;
mod known;
mod shrinking;
mod summary;
mod systems;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::command_line::Fuzz;
use crate::failure::Failure;
use crate::result::ResultFile;

use campaign::Campaign;
#[cfg(test)]
pub(crate) use summary::Finding;
pub(crate) use summary::Summary;
use systems::Systems;

/// What is to be done.
pub(crate) struct Plan<'a> {
    pub(crate) seed: u64,
    /// Until then.
    pub(crate) minutes: Option<f64>,
    /// Or so many programs.
    pub(crate) programs: Option<u64>,
    pub(crate) systems: &'a [String],
    pub(crate) cpus: Option<u32>,
    /// Which of how many parts.
    pub(crate) shard: (u64, u64),
    /// Where programs that differ go.
    pub(crate) keep: Option<&'a Path>,
}

impl Plan<'_> {
    /// Carries it out.
    ///
    /// # Errors
    /// A usage failure for systems that there are not; a host failure when one cannot be had; a signal failure when we are asked to stop.
    pub(crate) fn carry_out(&self) -> Result<Summary, Failure> {
        if let Some(folder) = self.keep {
            fs::create_dir_all(folder)
                .map_err(|error| Failure::host(format!("make the folder {}", folder.display()), error))?;
        }
        let systems = Systems::open(self.systems)?;
        let deadline = self.minutes.map(|minutes| Instant::now() + Duration::from_secs_f64(minutes * 60.0));
        Campaign::new(self, systems, deadline).run()
    }
}

/// Runs the verb. Status 1 when a difference is not explained.
pub(crate) fn run(options: &Fuzz) -> Result<ExitCode, Failure> {
    let saved = options.json.as_deref().map(ResultFile::create).transpose()?;
    let summary = if !options.merge.is_empty() {
        Summary::merged(&options.merge)?
    } else if let Some(file) = &options.replay {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
        let programs = fuzz::unpack(&text)
            .map_err(|sentence| Failure::usage(format!("{}: {sentence}", file.display())))?;
        campaign::replay(&programs, Systems::open(&options.systems)?, options.cpus)?
    } else {
        let minutes = options.minutes.or(options.programs.is_none().then_some(2.0));
        let plan = Plan {
            seed: options.seed,
            minutes,
            programs: options.programs,
            systems: &options.systems,
            cpus: options.cpus,
            shard: shard(options.shard.as_deref())?,
            keep: options.keep.as_deref(),
        };
        plan.carry_out()?
    };
    print!("{}", summary.table());
    if let Some(table) = &options.table {
        fs::write(table, summary.document())
            .map_err(|error| Failure::host(format!("write {}", table.display()), error))?;
    }
    if let Some(saved) = saved {
        let text =
            serde_json::to_vec_pretty(&summary).map_err(|error| Failure::host("write the result", error))?;
        saved.write_bytes(&text)?;
    }
    Ok(if summary.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads `I/N`.
fn shard(text: Option<&str>) -> Result<(u64, u64), Failure> {
    let Some(text) = text else { return Ok((1, 1)) };
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    numbers
        .filter(|(part, of)| (1..=*of).contains(part))
        .ok_or_else(|| Failure::usage(format!("--shard takes I/N with I from 1 to N, not '{text}'")))
}
