//! The programs in `workloads/`: found by the name of their folder, built when a source is newer (`workloads/README.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::Deserialize;

use crate::disk::Layout;
use crate::failure::Failure;
use crate::project;
use crate::qemu::Disk;

/// One folder of `workloads/`.
#[derive(Debug)]
pub(crate) struct Workload {
    name: String,
    folder: PathBuf,
    build: String,
    disk: Option<Layout>,
}

/// What of `job.toml` is needed to run it.
#[derive(Debug, Deserialize)]
struct Job {
    build: String,
    disk: Option<Layout>,
}

impl Workload {
    /// The workload of that name, if there is a folder for it.
    ///
    /// # Errors
    /// A host failure when its `job.toml` cannot be read.
    pub(crate) fn find(name: &str) -> Option<Result<Self, Failure>> {
        let folder = project::root().join("workloads").join(name);
        if name.contains('/') || !folder.join("job.toml").is_file() {
            return None;
        }
        let job = fs::read_to_string(folder.join("job.toml")).map_err(|error| error.to_string());
        let job =
            job.and_then(|text| toml::from_str::<Job>(&text).map_err(|error| error.message().to_owned()));
        Some(match job {
            Ok(job) => Ok(Workload { name: name.into(), folder, build: job.build, disk: job.disk }),
            Err(error) => Err(Failure::host(format!("read workloads/{name}/job.toml"), error)),
        })
    }

    /// The disk that it reads in a guest with so many CPUs, if it reads one.
    ///
    /// # Errors
    /// As [`Layout::disk`].
    pub(crate) fn disk(&self, cpus: u32) -> Result<Option<Disk>, Failure> {
        self.disk.as_ref().map(|layout| layout.disk(cpus)).transpose()
    }

    /// The built program.
    ///
    /// # Errors
    /// A host failure with the compiler's messages when it does not build.
    pub(crate) fn build(&self) -> Result<PathBuf, Failure> {
        let attempt = format!("build the workload {}", self.name);
        let programs = project::target_folder().join("workloads");
        fs::create_dir_all(&programs).map_err(|error| Failure::host(&attempt, error))?;
        let program = programs.join(&self.name);
        let sources = [self.folder.clone(), project::root().join("workloads/include")];
        let built = fs::metadata(&program).and_then(|metadata| metadata.modified());
        let newest = sources.iter().map(|folder| newest(folder)).max();
        if let (Ok(built), Some(newest)) = (built, newest)
            && built > newest
        {
            return Ok(program);
        }
        // Beside its place first: another run may be reading the older one.
        let unfinished = programs.join(format!("{}.{}", self.name, std::process::id()));
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &self.build]).current_dir(&self.folder).env("OUTPUT", &unfinished);
        let output = shell.output().map_err(|error| Failure::host(&attempt, error))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::host(attempt, format!("its compiler says:\n{}", messages.trim_end())));
        }
        fs::rename(&unfinished, &program).map_err(|error| Failure::host(&attempt, error))?;
        Ok(program)
    }
}

/// When the newest file of a folder was changed.
fn newest(folder: &Path) -> SystemTime {
    let Ok(entries) = fs::read_dir(folder) else {
        return SystemTime::UNIX_EPOCH;
    };
    let times = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        if metadata.is_dir() { Some(newest(&entry.path())) } else { metadata.modified().ok() }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
