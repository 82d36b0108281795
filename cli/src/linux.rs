//! Linux beside us: Debian's cloud kernel in the same machine, given the same files and the same orders.
//!
//! The kernel comes as Debian's package, is unpacked below `.cache/linux` and never installed. Its first program is ours
//! (`workloads/linux-init`): it obeys the orders of `protocol::orders`, speaks through the same ports and writes the same form
//! of report, so [`session`](crate::session) runs a Linux guest as it runs ours.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use comfy_table::Table;
use protocol::report::Report;
use sha2::{Digest, Sha256};

use crate::command_line::Run;
use crate::failure::Failure;
use crate::order::Order;
use crate::program::Companion;
use crate::project;
use crate::result::LinuxVersion;
use crate::run;
use crate::session::{self, Streams};
use crate::side::{self, Side};
use crate::tables;
use crate::workload::Workload;

/// Debian's name for the newest kernel made for virtual machines; it depends on the package that has the image.
const NEWEST: &str = "linux-image-cloud-amd64";

/// Where our first program lies in the Linux guest.
const INIT: &str = "/.ceasefire/linux-init";

/// What Linux is always told: to trust the emulator's time stamp counter (else it falls back to a clock that costs an exit per
/// reading), to start our program first, and to print nothing.
const ARGUMENTS: &str = "tsc=reliable quiet rdinit=/.ceasefire/linux-init";

/// A Linux kernel to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinuxKernel {
    pub(crate) image: PathBuf,
    /// Package and version, or the path of an image that was given.
    pub(crate) name: String,
    /// SHA-256 of the image, in hexadecimal.
    pub(crate) hash: String,
}

impl LinuxKernel {
    /// The kernel in the cache, which is filled first if it is empty.
    ///
    /// # Errors
    /// A host failure when there is none and Debian's packages cannot be had.
    pub(crate) fn of_debian() -> Result<Self, Failure> {
        let cache = project::root().join(".cache/linux");
        if let Some(kernel) = cached(&cache)? {
            return Ok(kernel);
        }
        eprintln!(
            "ceasefire: fetching Debian's Linux kernel as a package into .cache/linux (nothing is installed)"
        );
        fetch(&cache)?;
        cached(&cache)?
            .ok_or_else(|| Failure::host("find a kernel in Debian's package", "it has no boot/vmlinuz"))
    }

    /// Another image.
    ///
    /// # Errors
    /// A usage failure when it cannot be read.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        Self::named(path, path.display().to_string()).map_err(|error| {
            Failure::usage(format!("cannot read the Linux kernel {}: {error}", path.display()))
        })
    }

    fn named(image: &Path, name: String) -> io::Result<Self> {
        let digest = Sha256::digest(fs::read(image)?);
        Ok(LinuxKernel {
            image: image.to_owned(),
            name,
            hash: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }
}

/// The newest unpacked package: a folder named after it and its version, with `boot/vmlinuz-*` in it.
fn cached(cache: &Path) -> Result<Option<LinuxKernel>, Failure> {
    let sorted = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let is_image =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"));
    for package in sorted(cache).into_iter().rev() {
        let image = sorted(&package.join("boot")).into_iter().rfind(is_image);
        let name = package.file_name().map(|name| name.to_string_lossy().into_owned());
        if let (Some(image), Some(name)) = (image, name) {
            return LinuxKernel::named(&image, name)
                .map(Some)
                .map_err(|error| Failure::host("read the cached Linux kernel", error));
        }
    }
    Ok(None)
}

/// Fetches and unpacks the package that [`NEWEST`] stands for. The folder gets its name only when it is complete.
fn fetch(cache: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::host("fill .cache/linux", error);
    fs::create_dir_all(cache).map_err(failed)?;
    let folder = tempfile::Builder::new().prefix(".fetching-").tempdir_in(cache).map_err(failed)?;
    let depends = answer("apt-cache", &["depends", "--important", NEWEST], folder.path())?;
    let package = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
        .ok_or_else(|| {
            Failure::host(
                "find a Linux kernel to compare with",
                format!("this system's package lists do not have {NEWEST} (apt-get update may help, or --kernel-image)"),
            )
        })?;
    answer("apt-get", &["download", package], folder.path())?;
    let archive = fs::read_dir(folder.path())
        .map_err(failed)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| Failure::host("fetch the Linux kernel", "apt-get left no package behind"))?;
    let unpacked = folder.path().join("unpacked");
    let [from, to] = [&archive, &unpacked].map(|path| path.display().to_string());
    answer("dpkg", &["-x", &from, &to], folder.path())?;
    let name = archive.file_stem().unwrap_or(package.as_ref());
    fs::rename(&unpacked, cache.join(name)).map_err(failed)
}

/// What a command prints.
fn answer(name: &str, arguments: &[&str], folder: &Path) -> Result<String, Failure> {
    let attempt = format!("run {name} {}", arguments.join(" "));
    let output = Command::new(name)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::host(&attempt, error))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.trim().lines().last().unwrap_or("it failed").to_owned();
        return Err(Failure::host(attempt, last));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `ceasefire linux`: the program on Linux, with what its kernel counts.
pub(crate) fn run(options: &Run) -> Result<ExitCode, Failure> {
    let (order, _) = run::order(options)?;
    side::fits_linux(&order)?;
    let side = Side::linux(options.guest.kernel_image.as_deref())?;
    let prepared = side.prepare(order)?;
    let streams = Streams {
        input: session::Input::Bytes(Vec::new()),
        output: Box::new(io::stdout()),
        errors: Box::new(io::stderr()),
        kernel_log: None,
    };
    let outcome = prepared.run(streams, options.guest.timeout.0)?;
    if let (false, Some(kernel)) = (options.quiet, &side.linux) {
        let _ = io::stderr().write_all(summary(&outcome.report, kernel).as_bytes());
    }
    Ok(run::status(outcome.report.exit))
}

/// Adds to an order what makes Linux carry it out: our first program, and the words that start it.
///
/// # Errors
/// A host failure when the first program does not build.
pub(crate) fn prepare_for_linux(order: &mut Order) -> Result<(), Failure> {
    let init = Workload::find("linux-init")
        .unwrap_or_else(|| Err(Failure::host("find workloads/linux-init", "it is not in this tree")))?;
    order.companions.push(Companion { host: init.build()?, guest: INIT.into() });
    order.kernel_words.push(ARGUMENTS.into());
    Ok(())
}

/// Which kernel it was, and the interrupts it counted while the program ran.
fn summary(report: &Report, kernel: &LinuxVersion) -> String {
    let mut table: Table = tables::plain(&["interrupts on Linux", "all CPUs", "by CPU", "meaning"]);
    for row in &report.ledger {
        let by_cpu: Vec<_> = row.per_cpu.iter().map(u64::to_string).collect();
        let meaning = match row.name.as_str() {
            "TLB" => "translations invalidated on request of another CPU",
            "CAL" => "function calls from another CPU, those of TLB included",
            "RES" => "told to choose another task",
            "LOC" => "timer",
            _ => "",
        };
        table.add_row([&row.name, &row.total().to_string(), &by_cpu.join(" "), meaning]);
    }
    format!("\n{} (sha256 {})\n\n{}\n", kernel.name, &kernel.sha256[..16], tables::lines(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_in_the_cache_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(cached(cache.path()).unwrap(), None);
        for version in ["6.1.0-50", "6.1.0-56"] {
            let boot = cache.path().join(format!("linux_{version}/boot"));
            fs::create_dir_all(&boot).unwrap();
            fs::write(boot.join("config"), "").unwrap();
            fs::write(boot.join(format!("vmlinuz-{version}")), version).unwrap();
        }
        fs::create_dir_all(cache.path().join("zzz-incomplete/boot")).unwrap();
        let kernel = cached(cache.path()).unwrap().unwrap();
        assert_eq!(kernel.name, "linux_6.1.0-56");
        assert!(kernel.image.ends_with("boot/vmlinuz-6.1.0-56"));
        assert_eq!(kernel.hash.len(), 64);
    }
}
