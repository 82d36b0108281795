//! The `ceasefire` command: it runs Linux programs on the Ceasefire kernel in QEMU and accounts for every coherence interrupt.
//!
//! `command_line` says what can be typed; each verb has a file. Whatever runs a guest goes through `session`, which alone uses
//! `qemu`; whatever is saved has the form in `result`.
#![deny(unsafe_code)]

mod bench;
mod capture;
mod check;
mod command_line;
mod compare;
mod diagnosis;
mod disk;
mod doctor;
mod failure;
mod fuzz;
mod initramfs;
mod interpreter;
mod kernel_image;
mod libraries;
mod linux;
mod measurement;
mod mechanisms;
mod monitor;
mod number;
mod order;
mod page;
mod predict;
mod program;
mod project;
mod qemu;
mod report;
mod result;
mod run;
mod sanitizer;
mod session;
mod side;
mod size;
mod statistics;
mod tables;
mod test;
mod workload;

use std::process::ExitCode;

use command_line::Verb;
use failure::Failure;

fn main() -> ExitCode {
    let ended = command_line::read().and_then(|line| match &line.verb {
        Verb::Bench(options) => bench::run(options),
        Verb::Run(options) => run::run(options),
        Verb::Linux(options) => linux::run(options),
        Verb::Compare(options) => compare::run(options),
        Verb::Check(options) => check::run(options),
        Verb::Fuzz(options) => fuzz::run(options),
        Verb::Test(options) => test::run(options),
        Verb::Predict(options) => predict::run(options),
        Verb::Report(options) => report::run(options),
        Verb::Doctor => doctor::run(),
    });
    ended.unwrap_or_else(|failure: Failure| {
        if let Some(sentence) = failure.sentence() {
            eprintln!("ceasefire: {sentence}");
        }
        ExitCode::from(failure.status())
    })
}
