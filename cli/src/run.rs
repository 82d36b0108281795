//! `ceasefire run`: one program, once, with its ledger.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use protocol::orders;
use protocol::report::Exit;

use crate::command_line::{GuestOptions, Run, Turns};
use crate::failure::Failure;
use crate::initramfs::Initramfs;
use crate::kernel_image::{KernelImage, Symbols};
use crate::mechanisms;
use crate::program::Program;
use crate::qemu::{Guest, Mode};
use crate::result::{Record, ResultFile};
use crate::session::{self, Input, Names, Outcome, Sink, Streams};
use crate::tables;

/// What the program finds in its environment unless `--env` says otherwise: nothing of the host's, so that runs repeat.
const ENVIRONMENT: [&str; 2] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
];

/// Runs the program and ends with its status.
pub(crate) fn run(options: &Run) -> Result<ExitCode, Failure> {
    let result = options.json.as_deref().map(ResultFile::create).transpose()?;
    let without = mechanisms::parse(&options.guest.without)?;
    let mode = mode(&options.guest)?;
    let kernel_log: Option<Sink> = match &options.kernel_log {
        Some(path) => Some(Box::new(create(path)?)),
        None => None,
    };
    let (input, packed_input) = input(mode)?;
    let prepared = Prepared::new(&options.guest, mode, &without, &options.program, packed_input)?;
    let streams = Streams {
        input,
        output: Box::new(io::stdout()),
        errors: Box::new(io::stderr()),
        kernel_log,
    };
    let outcome = prepared.run(streams, options.guest.timeout.0)?;

    if let Some(result) = result {
        let record = Record::of_run(&outcome, &prepared, &without);
        result.write(&[record])?;
    }
    if !options.quiet {
        let summary = tables::render(&outcome.report, &without, &prepared.describe());
        // The program's own output was written; a closed terminal is no reason to change its status.
        let _ = io::stderr().write_all(summary.as_bytes());
    }
    Ok(status(outcome.report.exit))
}

/// A guest that is ready to start: kernel built, program checked and packed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) guest: Guest,
    pub(crate) command: Vec<OsString>,
    kernel: KernelImage,
    program: Symbols,
    /// Holds the initramfs and the kernel's copy until the run is over.
    _folder: tempfile::TempDir,
}

impl Prepared {
    /// Prepares `command` for a guest as `options` describe it. `input` replaces the live standard input.
    ///
    /// # Errors
    /// Usage failures about the program and its files, host failures about everything else.
    pub(crate) fn new(
        options: &GuestOptions,
        mode: Mode,
        without: &[&str],
        command: &[OsString],
        input: Option<Vec<u8>>,
    ) -> Result<Self, Failure> {
        let [name, arguments @ ..] = command else {
            return Err(Failure::usage(
                "no program to run was given: ./ceasefire run -- PROGRAM [ARGUMENTS]",
            ));
        };
        if name.as_bytes().starts_with(b"-") {
            let name = name.display();
            return Err(Failure::usage(format!(
                "there is no flag '{name}' (for a program of that name: ./{name})"
            )));
        }
        let program = Program::find(name, arguments)?;
        let mut archive = program.pack(&options.companions(), &environment(&options.env)?)?;
        if let Some(input) = input {
            archive
                .file(orders::INPUT.as_bytes(), 0o400, input)
                .map_err(Failure::Usage)?;
        }
        program.check(&archive)?;
        let kernel = match &options.kernel_image {
            Some(path) => KernelImage::open(path.clone())?,
            None => KernelImage::build()?,
        };
        let folder = tempfile::Builder::new()
            .prefix("ceasefire-")
            .tempdir()
            .map_err(|error| Failure::host("make a temporary folder", error))?;
        let initramfs = folder.path().join("initramfs.cpio");
        write_archive(&archive, &initramfs)?;
        // A copy, so that a build that starts meanwhile cannot change the kernel under us.
        let image = folder.path().join("kernel");
        std::fs::copy(&kernel.path, &image).map_err(|error| Failure::host("copy the kernel", error))?;
        let guest = Guest {
            board: options.machine,
            cpus: options.cpus,
            memory: options.memory,
            mode,
            kernel: image,
            initramfs,
            kernel_arguments: kernel_arguments(mode, without, options.kernel.as_deref()),
        };
        let symbols = Symbols::of(&program.content);
        Ok(Prepared {
            guest,
            command: command.to_vec(),
            kernel,
            program: symbols,
            _folder: folder,
        })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// As [`session::run`].
    pub(crate) fn run(&self, streams: Streams, limit: Option<Duration>) -> Result<Outcome, Failure> {
        session::run(
            &self.guest,
            streams,
            limit,
            Names {
                kernel: &self.kernel.symbols,
                program: &self.program,
            },
        )
    }

    /// "PROGRAM on 4 CPUs, parallel".
    fn describe(&self) -> String {
        let name = self
            .command
            .first()
            .map(|name| name.display().to_string())
            .unwrap_or_default();
        let plural = if self.guest.cpus == 1 { "CPU" } else { "CPUs" };
        let seed = match self.guest.mode {
            Mode::Deterministic { seed } => format!(" with seed {seed}"),
            _ => String::new(),
        };
        format!(
            "{name} on {} {plural}, {} mode{seed}",
            self.guest.cpus,
            self.guest.mode.name()
        )
    }
}

/// The mode asked for, or the one that suits this host: CPUs that outnumber the host's cores would wait for the host's
/// scheduler at every interrupt, so they take turns instead.
///
/// # Errors
/// A usage failure when a seed is given to a mode that has none.
pub(crate) fn mode(options: &GuestOptions) -> Result<Mode, Failure> {
    if options.deterministic {
        return Ok(Mode::Deterministic {
            seed: options.seed.unwrap_or(0),
        });
    }
    if options.seed.is_some() {
        return Err(Failure::usage(
            "--seed varies deterministic runs: add --deterministic",
        ));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(match options.mode {
        Some(Turns::Parallel) => Mode::Parallel,
        Some(Turns::Single) => Mode::Single,
        None if options.cpus as usize <= cores => Mode::Parallel,
        None => Mode::Single,
    })
}

/// Live input arrives at some instant of the host's clock; a deterministic run reads it from a packed file instead.
fn input(mode: Mode) -> Result<(Input, Option<Vec<u8>>), Failure> {
    if !matches!(mode, Mode::Deterministic { .. }) {
        return Ok((Input::Ours, None));
    }
    let mut bytes = Vec::new();
    if !io::stdin().is_terminal() {
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::host("read standard input", error))?;
    }
    Ok((Input::Bytes(Vec::new()), Some(bytes)))
}

fn environment(settings: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let name = |entry: &OsString| {
        entry
            .as_bytes()
            .split(|byte| *byte == b'=')
            .next()
            .map(<[u8]>::to_vec)
    };
    let mut entries: Vec<OsString> = ENVIRONMENT.iter().map(OsString::from).collect();
    for setting in settings {
        match setting.as_bytes().iter().position(|byte| *byte == b'=') {
            Some(1..) => {}
            _ => {
                return Err(Failure::usage(format!(
                    "--env takes NAME=VALUE, not '{}'",
                    setting.display()
                )));
            }
        }
        entries.retain(|entry| name(entry) != name(setting));
        entries.push(setting.clone());
    }
    Ok(entries)
}

fn kernel_arguments(mode: Mode, without: &[&str], further: Option<&str>) -> String {
    let mut words = Vec::new();
    if !without.is_empty() {
        words.push(format!("without={}", without.join(",")));
    }
    if let Mode::Deterministic { seed } = mode {
        words.push(format!("deterministic seed={seed}"));
    }
    words.extend(further.map(str::to_owned));
    words.join(" ")
}

fn write_archive(archive: &Initramfs, path: &Path) -> Result<(), Failure> {
    let write = || {
        let mut file = io::BufWriter::new(File::create(path)?);
        archive.write_to(&mut file)?;
        file.flush()
    };
    write().map_err(|error| Failure::host("write the initramfs", error))
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// The status of a shell that had run the program.
fn status(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Signal(signal) => ExitCode::from(128u8.saturating_add(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_replace_the_environment_by_name() {
        let entries = environment(&["HOME=/x".into(), "A=b=c".into()]).unwrap();
        assert!(entries.contains(&"HOME=/x".into()) && !entries.contains(&"HOME=/root".into()));
        assert!(entries.contains(&"A=b=c".into()));
        assert!(environment(&["=x".into()]).is_err());
        assert!(environment(&["x".into()]).is_err());
    }

    #[test]
    fn the_kernel_is_told_mode_and_mechanisms() {
        let words = kernel_arguments(
            Mode::Deterministic { seed: 7 },
            &["lazy", "gather"],
            Some("selfcheck"),
        );
        assert_eq!(words, "without=lazy,gather deterministic seed=7 selfcheck");
        assert_eq!(kernel_arguments(Mode::Parallel, &[], None), "");
    }
}
