//! `ceasefire run`: one program, once, with its ledger.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use protocol::report::Exit;

use crate::command_line::{GuestOptions, Run, Turns};
use crate::disk;
use crate::failure::Failure;
use crate::mechanisms;
use crate::order::Order;
use crate::program;
use crate::qemu::{Disk, Mode};
use crate::result::{self, Document, Record, ResultFile, System};
use crate::sanitizer;
use crate::session::{Input, Sink, Streams};
use crate::side::Side;
use crate::tables;
use crate::workload::Workload;

/// Runs the program and ends with its status.
pub(crate) fn run(options: &Run) -> Result<ExitCode, Failure> {
    let guest = &options.guest;
    let (order, input) = order(options)?;
    let result = options.json.as_deref().map(ResultFile::create).transpose()?;
    let kernel_log: Option<Sink> = match &options.kernel_log {
        Some(path) => Some(Box::new(create(path)?)),
        None => None,
    };
    let prepared = Side::ceasefire(guest.kernel_image.as_deref()).prepare(order)?;
    let streams =
        Streams { input, output: Box::new(io::stdout()), errors: Box::new(io::stderr()), kernel_log };
    let load = result::load();
    let outcome = prepared.run(streams, guest.timeout.0)?;

    if let Some(result) = result {
        let run = result::Run::of(0, System::Ceasefire, &prepared.order, &outcome, load);
        let name = prepared.order.place.file_name().unwrap_or_default().to_string_lossy();
        result.write(&Document::new(vec![Record::unmeasured(&name, &run)], vec![run]))?;
    }
    if !options.quiet {
        let summary = tables::render(
            &outcome.report,
            &mechanisms::changed(&prepared.order.with, &prepared.order.without),
            &title(&options.program[0], &prepared.order),
        );
        // The program's own output was written; a closed terminal is no reason to change its status.
        let _ = io::stderr().write_all(summary.as_bytes());
        if let Some(sanitized) = &outcome.sanitized {
            eprintln!("\n{}", sanitizer::summary(sanitized));
        }
    }
    Ok(status(outcome.report.exit))
}

/// What the command line asks for, and where the program's input comes from.
///
/// # Errors
/// A usage failure about flags or the program's name; a host failure when a workload does not build.
pub(crate) fn order(options: &Run) -> Result<(Order, Input), Failure> {
    let mode = mode(&options.guest)?;
    let mut order = order_for(&options.guest, &options.program, mode)?;
    let (input, packed_input) = input(mode)?;
    order.packed_input = packed_input;
    Ok((order, input))
}

/// The same in a mode that is decided already, and without input.
///
/// # Errors
/// As [`order`].
pub(crate) fn order_for(guest: &GuestOptions, words: &[OsString], mode: Mode) -> Result<Order, Failure> {
    let (with, without) = mechanisms::parse_both(&guest.with, &guest.without)?;
    let [name, arguments @ ..] = words else {
        return Err(Failure::usage("no program to run was given: ./ceasefire run -- PROGRAM [ARGUMENTS]"));
    };
    let named = disk::named(&guest.disk, guest.machine)?;
    let (program, place, disk) = find(name)?;
    Ok(Order {
        program,
        place,
        arguments: arguments.to_vec(),
        companions: guest.companions(),
        environment: guest.env.clone(),
        packed_input: None,
        board: guest.machine,
        cpus: guest.cpus,
        memory: guest.memory,
        mode,
        without,
        with,
        kernel_words: guest.kernel.iter().cloned().collect(),
        disks: disk.into_iter().chain(named).collect(),
        trace: false,
        linux: None,
        sanitize: guest.sanitize,
    })
}

/// The program of that name on the host, and its place in the guest. A name that is neither a path nor in PATH may be a
/// workload's, which is built then, and whose disk is made.
fn find(name: &OsStr) -> Result<(PathBuf, PathBuf, Option<Disk>), Failure> {
    if name.as_bytes().starts_with(b"-") {
        let name = name.display();
        return Err(Failure::usage(format!(
            "there is no flag '{name}' (for a program of that name: ./{name})"
        )));
    }
    let absent = match program::locate(name) {
        Ok(path) => {
            let place = program::guest_path(&path);
            return Ok((path, place, None));
        }
        Err(absent) => absent,
    };
    match name.to_str().and_then(Workload::find).transpose()? {
        Some(workload) => Ok((workload.build()?, Path::new("/").join(name), workload.disk()?)),
        None => Err(absent),
    }
}

/// The mode asked for, or the one that suits this host: CPUs that outnumber the host's cores would wait for the host's
/// scheduler at every interrupt, so they take turns instead.
///
/// # Errors
/// A usage failure when a seed is given to a mode that has none.
fn mode(options: &GuestOptions) -> Result<Mode, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let default = if options.cpus as usize <= cores { Mode::Parallel } else { Mode::Single };
    mode_or(options, default)
}

/// The mode asked for, or another.
///
/// # Errors
/// As [`mode`].
pub(crate) fn mode_or(options: &GuestOptions, default: Mode) -> Result<Mode, Failure> {
    if options.deterministic {
        return Ok(Mode::Deterministic { seed: options.seed });
    }
    if options.seed.is_some() {
        return Err(Failure::usage("--seed varies deterministic runs: add --deterministic"));
    }
    Ok(match options.mode {
        Some(Turns::Parallel) => Mode::Parallel,
        Some(Turns::Single) => Mode::Single,
        None => default,
    })
}

/// Live input arrives at some instant of the host's clock; a deterministic run reads it from a packed file instead.
fn input(mode: Mode) -> Result<(Input, Option<Vec<u8>>), Failure> {
    if !matches!(mode, Mode::Deterministic { .. }) {
        return Ok((Input::Ours, None));
    }
    Ok((Input::Packed, Some(whole_input()?)))
}

/// Our standard input to its end; nothing when it is a terminal, at which nobody would know that we wait.
///
/// # Errors
/// A host failure when it cannot be read.
pub(crate) fn whole_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if !io::stdin().is_terminal() {
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::host("read standard input", error))?;
    }
    Ok(bytes)
}

pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// "PROGRAM on 4 CPUs, parallel mode".
fn title(name: &OsStr, order: &Order) -> String {
    let plural = if order.cpus == 1 { "CPU" } else { "CPUs" };
    let seed = match order.mode {
        Mode::Deterministic { seed: Some(seed) } => format!(" with seed {seed}"),
        _ => String::new(),
    };
    format!("{} on {} {plural}, {} mode{seed}", name.display(), order.cpus, order.mode.name())
}

/// The status of a shell that had run the program.
pub(crate) fn status(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Signal(signal) => ExitCode::from(128u8.saturating_add(signal)),
    }
}
