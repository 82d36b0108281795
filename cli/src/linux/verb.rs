//! `ceasefire linux`: one program, once, on Linux, with what its kernel counts.

use std::io::{self, Write};
use std::process::ExitCode;

use comfy_table::Table;
use protocol::report::{Report, Row};

use crate::command_line::OnLinux;
use crate::failure::Failure;
use crate::result::{self, Document, LinuxVersion, Record, ResultFile, System};
use crate::run;
use crate::session::{Input, Sink, Streams};
use crate::side::{self, Side};
use crate::tables;

/// Runs the program on Linux and ends with its status.
pub(crate) fn run(on_linux: &OnLinux) -> Result<ExitCode, Failure> {
    let options = &on_linux.run;
    if options.guest.kernel_image.is_some() {
        return Err(Failure::usage("--kernel-image is for our kernel; another Linux is --linux PATH"));
    }
    let (mut order, _) = run::order(options)?;
    side::fits_linux(&order)?;
    order.trace = on_linux.trace;
    let result = options.json.as_deref().map(ResultFile::create).transpose()?;
    let kernel_log: Option<Sink> = match &options.kernel_log {
        Some(path) => Some(Box::new(run::create(path)?)),
        None => None,
    };
    let side = Side::linux(on_linux.linux.as_deref())?;
    if order.packed_input.is_none() {
        order.packed_input = Some(run::whole_input()?);
    }
    let prepared = side.prepare(order)?;
    let streams = Streams {
        input: Input::Packed,
        output: Box::new(io::stdout()),
        errors: Box::new(io::stderr()),
        kernel_log,
    };
    let load = result::load();
    let outcome = prepared.run(streams, options.guest.timeout.0)?;
    if let Some(result) = result {
        let run = result::Run::of(0, System::Linux, &prepared.order, &outcome, load);
        let name = prepared.order.place.file_name().unwrap_or_default().to_string_lossy();
        let mut document = Document::new(vec![Record::unmeasured(&name, &run)], vec![run]);
        document.versions.linux = side.linux.clone();
        result.write(&document)?;
    }
    if let (false, Some(kernel)) = (options.quiet, &side.linux) {
        let _ = io::stderr().write_all(summary(&outcome.report, kernel).as_bytes());
    }
    Ok(run::status(outcome.report.exit))
}

/// Which kernel it was, and what it counted while the program ran.
fn summary(report: &Report, kernel: &LinuxVersion) -> String {
    let mut text = format!("\n{} (sha256 {})\n", kernel.name, &kernel.sha256[..16]);
    for (group, heading, meaning) in [
        ("linux", "interrupts on Linux", interrupt as fn(&str) -> &'static str),
        ("linux.flush", "flushes on Linux", flush),
        ("linux.cause", "causes of flushes", cause),
    ] {
        let mut table: Table = tables::plain(&[heading, "all CPUs", "by CPU", "meaning"]);
        for row in report.group(group).filter(|row| row.total() > 0) {
            table.add_row([&row.name, &row.total().to_string(), &by_cpu(row), meaning(&row.name)]);
        }
        if !table.is_empty() {
            text.push_str(&format!("\n{}\n", tables::lines(&table)));
        }
    }
    if let Some(time) = report.processor_time {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        text.push_str(&format!(
            "\nprocessor time: {:.1} ms in the program, {:.1} ms in the kernel\n",
            milliseconds(time.user),
            milliseconds(time.system)
        ));
    }
    text
}

fn by_cpu(row: &Row) -> String {
    let numbers: Vec<_> = row.per_cpu.iter().map(u64::to_string).collect();
    numbers.join(" ")
}

/// What a row of Linux's report counts.
pub(crate) fn meaning(group: &str, name: &str) -> &'static str {
    match group {
        "linux" => interrupt(name),
        "linux.flush" => flush(name),
        "linux.cause" => cause(name),
        _ => "",
    }
}

/// What a row of `/proc/interrupts` counts.
fn interrupt(name: &str) -> &'static str {
    match name {
        "TLB" => "translations invalidated on request of another CPU",
        "CAL" => "function calls from another CPU, those of TLB included",
        "RES" => "told to choose another task",
        "LOC" => "timer",
        _ => "",
    }
}

/// What a row of `linux.flush` counts: its reason.
fn flush(name: &str) -> &'static str {
    match name.split('.').next().unwrap_or(name) {
        "task_switch" => "on the way to another address space",
        "remote_shootdown" => "on request of another CPU, by interrupt",
        "local_shootdown" => "of the kernel's own translations",
        "local_mm_shootdown" => "of this CPU's own translations, by the CPU that made the change",
        "remote_ipi_send" => "other CPUs were considered; idle ones among them were not interrupted",
        _ => "",
    }
}

/// What a row of `linux.cause` counts.
fn cause(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("own") => "flushes on the CPU that made the change",
        Some("others") => "changes for which other CPUs were considered",
        _ => "",
    }
}
