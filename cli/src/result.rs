//! The one form in which results are saved (`docs/guide/results.md`), and how they reach the disk.
//!
//! A result is written beside its place and renamed into it, so that a file of that name is always a whole result: the older one
//! until the newer is complete.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::order::Order;
use crate::qemu::{self, Mode};
use crate::session::Outcome;

/// Name and version of the form.
pub(crate) const SCHEMA: &str = "ceasefire.result/1";

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: Machine,
    versions: Versions,
    records: &'a [Record],
}

/// The host.
#[derive(Debug, Serialize)]
struct Machine {
    processor: Option<String>,
    cores: usize,
    memory_bytes: Option<u64>,
    kernel: Option<String>,
    /// Runnable processes, averaged over one minute, when the result was written.
    load: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Versions {
    ceasefire: &'static str,
    /// The commit, with `+` when files differ from it.
    commit: Option<String>,
    emulator: Option<String>,
}

/// One measured case. What was not measured is null.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    workload: String,
    case: Option<String>,
    system: &'static str,
    without: Vec<&'static str>,
    mode: &'static str,
    seed: Option<u64>,
    cpus: u32,
    memory_mebibytes: u64,
    board: String,
    threads: Option<u32>,
    operations: Option<u64>,
    interrupts_per_operation: Option<f64>,
    bound_per_operation: Option<f64>,
    nanoseconds_per_operation: Option<f64>,
    instructions_per_operation: Option<f64>,
    runs: Vec<RawRun>,
}

/// One run as it was.
#[derive(Debug, Serialize)]
struct RawRun {
    command: Vec<String>,
    wall_seconds: f64,
    report: serde_json::Value,
}

impl Record {
    /// One run of any program: nothing is known of its operations.
    pub(crate) fn of_run(outcome: &Outcome, order: &Order) -> Self {
        let words = std::iter::once(order.place.as_os_str()).chain(order.arguments.iter().map(AsRef::as_ref));
        let command: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let name = order.place.file_name().unwrap_or_default();
        Record {
            workload: name.to_string_lossy().into_owned(),
            case: None,
            system: "ceasefire",
            without: order.without.clone(),
            mode: order.mode.name(),
            seed: match order.mode {
                Mode::Deterministic { seed } => seed,
                _ => None,
            },
            cpus: order.cpus,
            memory_mebibytes: order.memory.mebibytes,
            board: order.board.to_string(),
            threads: None,
            operations: None,
            interrupts_per_operation: None,
            bound_per_operation: None,
            nanoseconds_per_operation: None,
            instructions_per_operation: None,
            runs: vec![RawRun {
                command,
                wall_seconds: outcome.wall.as_secs_f64(),
                report: outcome.raw_report.clone(),
            }],
        }
    }
}

/// A result that is going to be written.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl ResultFile {
    /// Makes sure, before anything is run, that the result can be written.
    ///
    /// # Errors
    /// A usage failure when `path` is a folder or its folder takes no files.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::usage(format!("cannot write {}: {why}", path.display()));
        if path.is_dir() {
            return Err(refuse("it is a folder".into()));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(refuse(format!("there is no folder {}", folder.display())));
        }
        let file = NamedTempFile::new_in(folder).map_err(|error| refuse(error.kind().to_string()))?;
        Ok(ResultFile { path: path.to_path_buf(), file })
    }

    /// Writes the records, and puts the file in its place.
    ///
    /// # Errors
    /// A host failure when the disk refuses; the older file is then as it was.
    pub(crate) fn write(self, records: &[Record]) -> Result<(), Failure> {
        let document = Document {
            schema: SCHEMA,
            machine: Machine::this(),
            versions: Versions {
                ceasefire: env!("CARGO_PKG_VERSION"),
                commit: commit(),
                emulator: qemu::version(),
            },
            records,
        };
        let ResultFile { path, mut file } = self;
        let failed = |error: std::io::Error| Failure::host(format!("write {}", path.display()), error);
        serde_json::to_writer_pretty(&mut file, &document).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
        // A temporary file is for its owner only; a result is for whoever may read the folder.
        set_readable(&file).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn set_readable(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

impl Machine {
    fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split(':').nth(1).map(|value| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        Machine {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory.and_then(|text| Some(text.split(' ').next()?.parse::<u64>().ok()? * 1024)),
            kernel: Some(read("/proc/sys/kernel/osrelease").trim().to_owned())
                .filter(|text| !text.is_empty()),
            load: read("/proc/loadavg").split(' ').next().and_then(|text| text.parse().ok()),
        }
    }
}

/// The commit of the sources that this command was built in.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let output = command.args(arguments).current_dir(crate::project::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| !list.is_empty());
    Some(if changed { commit + "+" } else { commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_replaces_the_older_one_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(&path, "older").unwrap();
        drop(ResultFile::create(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
        ResultFile::create(&path).unwrap().write(&[]).unwrap();
        let document: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn a_place_that_takes_no_file_is_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ResultFile::create(folder.path()).unwrap_err().status(), 2);
        assert_eq!(ResultFile::create(&folder.path().join("no/such")).unwrap_err().status(), 2);
    }
}
