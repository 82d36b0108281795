//! An order to run one program in one guest, and the guest made ready for it: every command that runs a program goes this way.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::orders;

use crate::failure::Failure;
use crate::initramfs::Initramfs;
use crate::kernel_image::{KernelImage, Symbols};
use crate::program::{Companion, Program};
use crate::qemu::{Board, Disk, Guest, Mode};
use crate::sanitizer::Sanitizer;
use crate::session::{self, Names, Outcome, Streams};
use crate::size::Memory;

/// What the program finds in its environment unless the order says otherwise: nothing of the host's, so that runs repeat.
const ENVIRONMENT: [&str; 2] =
    ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"];

/// What to run and where.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The program's file on the host.
    pub(crate) program: PathBuf,
    /// Where it lies in the guest.
    pub(crate) place: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) companions: Vec<Companion>,
    /// Settings `NAME=VALUE`, added to the standard environment.
    pub(crate) environment: Vec<OsString>,
    /// The program's whole input, packed; else it comes over the serial line.
    pub(crate) packed_input: Option<Vec<u8>>,
    pub(crate) board: Board,
    pub(crate) cpus: u32,
    pub(crate) memory: Memory,
    pub(crate) mode: Mode,
    /// Mechanisms that are off.
    pub(crate) without: Vec<&'static str>,
    /// Mechanisms that are on, and off by default.
    pub(crate) with: Vec<&'static str>,
    /// Further words for the kernel's command line.
    pub(crate) kernel_words: Vec<String>,
    /// In the order in which the guest numbers them.
    pub(crate) disks: Vec<Disk>,
    /// Let Linux count its flushes by reason; that takes time, so such a run's times mean nothing.
    pub(crate) trace: bool,
    /// Set by `linux::prepare_for_linux` when the kernel is Linux: which of its modules are packed, in loading order.
    pub(crate) linux: Option<Vec<PathBuf>>,
    /// Whether the sanitizer watches the run.
    pub(crate) sanitize: bool,
}

/// A guest that is ready to start: program checked, everything packed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) order: Order,
    guest: Guest,
    kernel: Arc<KernelImage>,
    program: Symbols,
    /// Holds the initramfs until the run is over.
    _folder: tempfile::TempDir,
}

impl Order {
    /// A program alone on one CPU, with nothing special about the machine.
    pub(crate) fn plain(program: PathBuf, place: PathBuf) -> Self {
        Order {
            program,
            place,
            arguments: Vec::new(),
            companions: Vec::new(),
            environment: Vec::new(),
            packed_input: None,
            board: Board::Q35,
            cpus: 1,
            memory: Memory { mebibytes: 512 },
            mode: Mode::Single,
            without: Vec::new(),
            with: Vec::new(),
            kernel_words: Vec::new(),
            disks: Vec::new(),
            trace: false,
            linux: None,
            sanitize: false,
        }
    }

    /// Makes a guest ready.
    ///
    /// # Errors
    /// Usage failures about the program and its files, host failures about everything else.
    pub(crate) fn prepare(
        self,
        kernel: impl FnOnce() -> Result<Arc<KernelImage>, Failure>,
    ) -> Result<Prepared, Failure> {
        let program = Program::open(&self.program, &self.place)?;
        let mut archive = program.pack(&self.arguments, &self.companions, &self.whole_environment()?)?;
        if let Some(input) = &self.packed_input {
            archive.file(orders::INPUT.as_bytes(), 0o400, input.clone()).map_err(Failure::Usage)?;
        }
        self.pack_orders_for_linux(&mut archive).map_err(Failure::Usage)?;
        let kernel = kernel()?;
        let sanitizer = self.sanitize.then(|| Sanitizer::of(&kernel.symbols)).transpose()?;
        let folder = tempfile::Builder::new()
            .prefix("ceasefire-")
            .tempdir()
            .map_err(|error| Failure::host("make a temporary folder", error))?;
        let initramfs = folder.path().join("initramfs.cpio");
        write_archive(&archive, &initramfs)?;
        let guest = Guest {
            board: self.board,
            cpus: self.cpus,
            memory: self.memory,
            mode: self.mode,
            kernel: kernel.path.clone(),
            initramfs,
            kernel_arguments: self.kernel_arguments(),
            disks: self.disks.clone(),
            linux: self.linux.is_some(),
            sanitizer,
        };
        let symbols = Symbols::of(&program.content);
        Ok(Prepared { order: self, guest, kernel, program: symbols, _folder: folder })
    }

    /// What only Linux is told, beside its command line.
    fn pack_orders_for_linux(&self, archive: &mut Initramfs) -> Result<(), String> {
        let Some(modules) = &self.linux else { return Ok(()) };
        if self.trace {
            archive.file(orders::TRACE.as_bytes(), 0o400, Vec::new())?;
        }
        if !self.disks.is_empty() {
            let count = self.disks.len().to_string();
            archive.file(orders::DISKS.as_bytes(), 0o400, count.into_bytes())?;
            let paths = modules.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat());
            archive.file(orders::MODULES.as_bytes(), 0o400, paths.collect())?;
        }
        Ok(())
    }

    fn whole_environment(&self) -> Result<Vec<OsString>, Failure> {
        let name = |entry: &OsString| entry.as_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
        let mut entries: Vec<OsString> = ENVIRONMENT.iter().map(OsString::from).collect();
        for setting in &self.environment {
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

    fn kernel_arguments(&self) -> String {
        if self.linux.is_some() {
            return self.kernel_words.join(" ");
        }
        let mut words = Vec::new();
        if !self.without.is_empty() {
            words.push(format!("without={}", self.without.join(",")));
        }
        if !self.with.is_empty() {
            words.push(format!("with={}", self.with.join(",")));
        }
        if let Mode::Deterministic { seed } = self.mode {
            words.push("deterministic".into());
            words.extend(seed.map(|seed| format!("seed={seed}")));
        }
        if self.mode == Mode::Single {
            words.push("turns".into());
        }
        words.extend(self.kernel_words.iter().cloned());
        words.join(" ")
    }
}

impl Prepared {
    /// Runs it once.
    ///
    /// # Errors
    /// As [`session::run`].
    pub(crate) fn run(&self, streams: Streams, limit: Option<Duration>) -> Result<Outcome, Failure> {
        session::run(
            &self.guest,
            streams,
            limit,
            Names { kernel: &self.kernel.symbols, program: &self.program },
        )
    }
}

fn write_archive(archive: &Initramfs, path: &Path) -> Result<(), Failure> {
    let write = || {
        let mut file = io::BufWriter::new(File::create(path)?);
        archive.write_to(&mut file)?;
        file.flush()
    };
    write().map_err(|error| Failure::host("write the initramfs", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order { mode: Mode::Parallel, ..Order::plain("/bin/busybox".into(), "/bin/busybox".into()) }
    }

    #[test]
    fn settings_replace_the_environment_by_name() {
        let with = |settings: &[&str]| {
            let environment = settings.iter().map(OsString::from).collect();
            Order { environment, ..order() }.whole_environment()
        };
        let entries = with(&["HOME=/x", "A=b=c"]).unwrap();
        assert!(entries.contains(&"HOME=/x".into()) && !entries.contains(&"HOME=/root".into()));
        assert!(entries.contains(&"A=b=c".into()));
        assert!(with(&["=x"]).is_err() && with(&["x"]).is_err());
    }

    #[test]
    fn the_kernel_is_told_mode_and_mechanisms() {
        let told = Order {
            mode: Mode::Deterministic { seed: Some(7) },
            without: vec!["lazy", "gather"],
            with: vec!["clean"],
            kernel_words: vec!["selfcheck".into()],
            ..order()
        };
        assert_eq!(told.kernel_arguments(), "without=lazy,gather with=clean deterministic seed=7 selfcheck");
        assert_eq!(order().kernel_arguments(), "");
    }
}
