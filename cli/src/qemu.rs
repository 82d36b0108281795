//! The only place that knows QEMU: its command line, the channels to the guest, its exit statuses.
//!
//! What goes through the channels is defined in `protocol`; here they become descriptors that QEMU inherits.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::io::{self, PipeReader, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use clap::ValueEnum;
use command_fds::{CommandFdExt, FdMapping};

use protocol::{off, port};
use serde::Deserialize;

use crate::failure::Failure;
use crate::sanitizer::Sanitizer;
use crate::size::Memory;

pub(crate) const EMULATOR: &str = "qemu-system-x86_64";

/// The board that the guest sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Board {
    /// A PC with PCI Express and a BIOS.
    #[default]
    Q35,
    /// The smallest board; starts faster.
    Microvm,
}

impl Board {
    /// A PC's first bus has room for a few more devices; the small board has so many places.
    pub(crate) fn most_disks(self) -> usize {
        match self {
            Board::Q35 => 16,
            Board::Microvm => 8,
        }
    }

    /// How many mebibytes of RAM lie below the hole under 4 GiB: all, as long as they fit there.
    fn low_memory(self, memory: Memory) -> u64 {
        let (most, if_more) = match self {
            Board::Q35 => (2816, 2048),
            Board::Microvm => (3072, 3072),
        };
        if memory.mebibytes < most { memory.mebibytes } else { if_more }
    }
}

impl Display for Board {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Board::Q35 => "q35",
            Board::Microvm => "microvm",
        })
    }
}

/// How the guest's CPUs advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each on a host thread of its own: real races, and times that depend on the host's cores.
    Parallel,
    /// In turn on one host thread: times are the summed work of all CPUs.
    Single,
    /// In turn, by a clock that counts instructions: the same every time. A seed makes the guest preempt at other instants.
    Deterministic { seed: Option<u64> },
}

impl Mode {
    /// The name used in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Parallel => "parallel",
            Mode::Single => "single",
            Mode::Deterministic { .. } => "deterministic",
        }
    }
}

/// A disk of the guest: a virtio block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Its content: a file of the host.
    pub(crate) image: PathBuf,
    pub(crate) access: Access,
}

/// What becomes of what a guest writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The guest may not write.
    ReadOnly,
    /// It goes into the file.
    Writable,
    /// It is forgotten at the end of the run, so that every run finds the file as it is.
    Forgetful,
}

/// A guest to start.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) board: Board,
    pub(crate) cpus: u32,
    pub(crate) memory: Memory,
    pub(crate) mode: Mode,
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
    pub(crate) kernel_arguments: String,
    /// In the order in which the guest numbers them.
    pub(crate) disks: Vec<Disk>,
    /// Its kernel is Linux: the serial line is that kernel's console and takes no input.
    pub(crate) linux: bool,
    /// Watches every access, if there.
    pub(crate) sanitizer: Option<Sanitizer>,
}

/// A running emulator and our ends of its channels.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) emulator: Child,
    pub(crate) input: ChildStdin,
    /// What the guest sends on the serial port: only the sign that it is ready for input.
    pub(crate) ready: ChildStdout,
    pub(crate) monitor: UnixStream,
    pub(crate) kernel_log: PipeReader,
    pub(crate) output: PipeReader,
    pub(crate) errors: PipeReader,
    pub(crate) report: PipeReader,
    /// What the sanitizer says.
    pub(crate) sanitizer: Option<PipeReader>,
}

/// How the emulator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The guest wrote its report and switched the machine off.
    Orderly,
    /// The guest's kernel gave up.
    Panicked,
    /// QEMU itself failed or was killed.
    Emulator(ExitStatus),
}

impl End {
    pub(crate) fn of(status: ExitStatus) -> Self {
        let exit = |written: u32| i32::try_from(2 * written + 1).ok();
        match status.code() {
            code @ Some(_) if code == exit(off::ORDERLY) => End::Orderly,
            code @ Some(_) if code == exit(off::PANIC) => End::Panicked,
            _ => End::Emulator(status),
        }
    }
}

const MONITOR: i32 = 10;
const SANITIZER: i32 = 15;
/// Descriptor in QEMU, debug port, name: the streams that the guest writes.
const STREAMS: [(i32, u16, &str); 4] = [
    (11, port::LOG, "log"),
    (12, port::OUTPUT, "output"),
    (13, port::ERRORS, "errors"),
    (14, port::REPORT, "report"),
];

impl Guest {
    /// The arguments of QEMU, which finds its channels as inherited descriptors.
    fn arguments(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut add = |text: &str| line.push(text.into());
        for text in [
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-no-shutdown",
            "-display",
            "none",
            "-cpu",
            "max",
        ] {
            add(text);
        }
        add("-machine");
        match self.board {
            Board::Q35 => add("q35"),
            Board::Microvm if self.disks.is_empty() => add("microvm,isa-serial=on,rtc=on"),
            // With firmware tables the emulator describes them there, in bytecode; without, on the kernel's command line.
            Board::Microvm => add("microvm,isa-serial=on,rtc=on,acpi=off"),
        }
        add("-smp");
        add(&self.cpus.to_string());
        add("-m");
        add(&format!("{}M", self.memory.mebibytes));
        match self.mode {
            Mode::Parallel => ["-accel", "tcg,thread=multi"].map(&mut add),
            Mode::Single => ["-accel", "tcg,thread=single"].map(&mut add),
            Mode::Deterministic { seed } => {
                for text in ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"] {
                    add(text);
                }
                add("-seed");
                add(&seed.unwrap_or(0).to_string());
                ["-rtc", "base=2026-01-01T00:00:00,clock=vm"].map(&mut add)
            }
        };
        add("-chardev");
        add(&format!("socket,id=monitor,fd={MONITOR}"));
        add("-mon");
        add("chardev=monitor,mode=control");
        for (descriptor, port, name) in STREAMS {
            add("-chardev");
            add(&format!("file,id={name},path=/dev/fd/{descriptor}"));
            add("-device");
            // The firmware writes its own log to port 0x402 if that reads as 0xe9, the device's default.
            add(&format!("isa-debugcon,iobase={port:#x},chardev={name},readback=0"));
        }
        for text in ["-chardev", "stdio,id=input,signal=off", "-serial", "chardev:input"] {
            add(text);
        }
        add("-device");
        add(&format!("isa-debug-exit,iobase={:#x},iosize=4", port::OFF));
        for (number, disk) in self.disks.iter().enumerate() {
            let device = match self.board {
                Board::Q35 => "virtio-blk-pci",
                Board::Microvm => "virtio-blk-device",
            };
            line.push("-drive".into());
            line.push(drive(disk, number));
            line.push("-device".into());
            // What the host has no room for is an error that the guest is told. By itself the emulator would stop the guest, for ever.
            line.push(format!("{device},drive=disk{number},werror=report").into());
        }
        if let Some(Sanitizer { library, declaration }) = &self.sanitizer {
            line.push("-plugin".into());
            // A comma ends a file's name there, unless it is doubled.
            let library = library.display().to_string().replace(',', ",,");
            let [ram, low] =
                [self.memory.mebibytes, self.board.low_memory(self.memory)].map(|size| size << 20);
            line.push(
                format!(
                    "file={library},declaration={declaration:x},ram={ram:x},low={low:x},report={SANITIZER:x}"
                )
                .into(),
            );
        }
        line.push("-kernel".into());
        line.push(self.kernel.clone().into());
        line.push("-initrd".into());
        line.push(self.initramfs.clone().into());
        line.push("-append".into());
        line.push(self.kernel_arguments.clone().into());
        line
    }

    /// Starts it.
    ///
    /// # Errors
    /// A host failure when QEMU is missing or the system refuses pipes or processes.
    pub(crate) fn start(&self) -> Result<Running, Failure> {
        self.launch().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::host(
                "start the emulator",
                format!("{EMULATOR} is missing (apt-get install qemu-system-x86)"),
            ),
            _ => Failure::host("start the emulator", error),
        })
    }

    fn launch(&self) -> io::Result<Running> {
        let (monitor, monitor_inside) = UnixStream::pair()?;
        let mut inherited = vec![FdMapping { parent_fd: monitor_inside.into(), child_fd: MONITOR }];
        let mut readers = Vec::new();
        for (descriptor, ..) in STREAMS {
            let (reader, writer) = pipe()?;
            inherited.push(FdMapping { parent_fd: OwnedFd::from(writer), child_fd: descriptor });
            readers.push(reader);
        }
        let Ok([kernel_log, output, errors, report]) = <[PipeReader; 4]>::try_from(readers) else {
            unreachable!("one reader was made for each of the four streams")
        };
        let sanitizer = self.sanitizer.as_ref().map(|_| pipe()).transpose()?.map(|(reader, writer)| {
            inherited.push(FdMapping { parent_fd: OwnedFd::from(writer), child_fd: SANITIZER });
            reader
        });
        let mut command = emulator_command();
        command.args(self.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.fd_mappings(inherited).map_err(io::Error::other)?;
        let mut emulator = command.spawn()?;
        // Our copies of QEMU's ends go with the command; else its streams would never end.
        drop(command);
        let (Some(input), Some(ready)) = (emulator.stdin.take(), emulator.stdout.take()) else {
            unreachable!("both were asked for as pipes")
        };
        Ok(Running { emulator, input, ready, monitor, kernel_log, output, errors, report, sanitizer })
    }
}

/// The back of a disk. A comma in QEMU's options is written twice.
fn drive(disk: &Disk, number: usize) -> OsString {
    let mut option = OsString::from(format!("if=none,id=disk{number},format=raw,file="));
    let path =
        disk.image.as_os_str().as_bytes().split(|byte| *byte == b',').collect::<Vec<_>>().join(&b",,"[..]);
    option.push(OsStr::from_bytes(&path));
    option.push(match disk.access {
        Access::ReadOnly => ",readonly=on",
        Access::Writable => "",
        Access::Forgetful => ",snapshot=on",
    });
    option
}

/// QEMU in a process group of its own, so that Ctrl-C reaches us only; and not outliving us where the system offers that.
fn emulator_command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = if Path::new("/usr/bin/setpriv").exists() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "--", EMULATOR]);
        command
    } else {
        Command::new(EMULATOR)
    };
    command.process_group(0);
    command
}

/// The emulator's version line, if it is installed.
pub(crate) fn version() -> Option<String> {
    let answer = Command::new(EMULATOR).arg("--version").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
