//! `ceasefire test`: everything that can be tested here, and one summary.

mod case;
mod disks;
mod expectation;
mod guest;
mod host;
mod tally;

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::command_line::Test;
use crate::failure::Failure;
use crate::kernel_image::KernelImage;
use case::Tier;
use tally::{Tally, Verdict};

pub(crate) use host::model;

/// Runs the tests whose names contain the filter. Status 0 when none failed, 1 when some did.
pub(crate) fn run(options: &Test) -> Result<ExitCode, Failure> {
    let tier = match (options.quick, options.deep) {
        (true, _) => Tier::Quick,
        (_, true) => Tier::Deep,
        _ => Tier::Full,
    };
    let chosen = |name: &str| options.filter.as_deref().is_none_or(|filter| name.contains(filter));
    let started = Instant::now();
    let mut tally = Tally::default();
    for step in host::STEPS.iter().filter(|step| chosen(step.name) && (tier > Tier::Quick || !step.slow)) {
        host::run(step, &mut tally);
    }
    let cases = case::read()?;
    let of = |tier: Tier| cases.iter().filter(move |case| case.tier <= tier && chosen(&case.name));
    let mut boots: Vec<_> = of(tier).flat_map(case::Case::boots).collect();
    if tier == Tier::Deep {
        boots.extend(of(Tier::Full).flat_map(case::Case::sanitized_boots));
    }
    let mut ended = Ok(());
    if !boots.is_empty() {
        match KernelImage::build() {
            Ok(kernel) => ended = guest::run_all(&boots, &Arc::new(kernel), &mut tally),
            Err(failure) => {
                let why = failure.sentence().unwrap_or_default().to_owned();
                tally.record("kernel for the tests inside the guest", Verdict::Failed(why), Duration::ZERO);
            }
        }
    }
    if tally.is_empty() && ended.is_ok() {
        let filter = options.filter.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("no test of this selection has '{filter}' in its name")));
    }
    eprintln!("{:.0} s", started.elapsed().as_secs_f64());
    println!("{}", tally.summary());
    ended?;
    Ok(if tally.any_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a program can be started by its name.
fn is_installed(program: &str) -> bool {
    let shell = Command::new("sh").args(["-c", "command -v \"$0\" >/dev/null", program]).status();
    shell.is_ok_and(|status| status.success())
}

/// What came of a test that needs this program.
fn not_installed(program: &str) -> Verdict {
    Verdict::Skipped(format!("{program} is not installed (./ceasefire doctor says how to get it)"))
}
