//! The programs in `workloads/`: found by the name of their folder, built when a source is newer (`workloads/README.md`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde::Deserialize;

use crate::disk::Numbered;
use crate::failure::Failure;
use crate::project;
use crate::qemu::Disk;
use crate::result::Description;
use crate::size::Memory;

/// How many builds were begun: each has its number.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// One folder of `workloads/`.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    folder: PathBuf,
    job: Job,
}

/// A library beyond the C compiler's own that a workload is built with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    /// A header of it: where that is, the library is.
    header: String,
    /// Debian's package of it.
    package: String,
}

/// What of `job.toml` is needed to run it and to explain it.
#[derive(Clone, Debug, Deserialize)]
struct Job {
    title: String,
    source: Option<String>,
    build: String,
    disk: Option<Numbered>,
    #[serde(default)]
    needs: Vec<Library>,
    bench: Option<Bench>,
    #[serde(default)]
    figures: BTreeMap<String, String>,
}

/// How `ceasefire bench` runs a workload.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Bench {
    /// Its place in the table.
    pub(crate) order: u32,
    /// The mechanisms that it is about: ours is run again without them.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Instead of `args` when time is short.
    pub(crate) quick_args: Option<Vec<String>>,
    /// Numbers of CPUs that make sense; it needs at least the least of them.
    pub(crate) cpus: Vec<u32>,
    /// Its counts are the same in every run.
    #[serde(default)]
    pub(crate) counts: bool,
    /// Except those of cases whose names begin so.
    #[serde(default)]
    pub(crate) varying: Vec<String>,
    #[serde(deserialize_with = "memory", default = "usual_memory")]
    pub(crate) memory: Memory,
    pub(crate) question: String,
}

fn memory<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Memory, D::Error> {
    Memory::parse(&String::deserialize(input)?).map_err(serde::de::Error::custom)
}

fn usual_memory() -> Memory {
    Memory { mebibytes: 512 }
}

impl Workload {
    /// The workloads that `bench` measures, in the table's order.
    ///
    /// # Errors
    /// A host failure when the folder or a `job.toml` cannot be read.
    pub(crate) fn all_measured() -> Result<Vec<(Self, Bench)>, Failure> {
        let folder = project::root().join("workloads");
        let entries = fs::read_dir(&folder).map_err(|error| Failure::host("read workloads/", error))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut all = Vec::new();
        for workload in names.filter_map(|name| Workload::find(&name)) {
            let workload = workload?;
            all.extend(workload.job.bench.clone().map(|bench| (workload, bench)));
        }
        all.sort_by(|(one, left), (other, right)| (left.order, &one.name).cmp(&(right.order, &other.name)));
        Ok(all)
    }

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
            Ok(job) => Ok(Workload { name: name.into(), folder, job }),
            Err(error) => Err(Failure::host(format!("read workloads/{name}/job.toml"), error)),
        })
    }

    /// The disk that it reads, if it reads one.
    ///
    /// # Errors
    /// As [`Numbered::disk`].
    pub(crate) fn disk(&self) -> Result<Option<Disk>, Failure> {
        self.job.disk.as_ref().map(Numbered::disk).transpose()
    }

    /// Why it cannot be built here, when a library that it needs is not installed.
    pub(crate) fn missing(&self) -> Option<String> {
        let library = self.job.needs.iter().find(|library| !library.is_installed())?;
        let package = &library.package;
        Some(format!(
            "{} is built with a library that is not installed here (as root: apt-get install {package})",
            self.name
        ))
    }

    /// What a result says about it.
    pub(crate) fn description(&self) -> Description {
        let bench = self.job.bench.as_ref();
        Description {
            name: self.name.clone(),
            title: self.job.title.clone(),
            question: bench.map(|bench| bench.question.clone()),
            source: self.job.source.clone(),
            counts_exact: bench.is_some_and(|bench| bench.counts),
            varying: bench.map(|bench| bench.varying.clone()).unwrap_or_default(),
            figures: self.job.figures.clone(),
        }
    }

    /// The built program.
    ///
    /// # Errors
    /// A host failure with the compiler's messages when it does not build, or with the library that it misses.
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
        if let Some(reason) = self.missing() {
            return Err(Failure::host(attempt, reason));
        }
        // Beside its place first, in a file of this build alone: another run may be reading the older one, and tests that run
        // side by side build what they share at the same time.
        let build = BUILDS.fetch_add(1, Ordering::Relaxed);
        let unfinished = programs.join(format!("{}.{}.{build}", self.name, std::process::id()));
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &self.job.build]).current_dir(&self.folder).env("OUTPUT", &unfinished);
        let output = shell.output().map_err(|error| Failure::host(&attempt, error))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::host(attempt, format!("its compiler says:\n{}", messages.trim_end())));
        }
        fs::rename(&unfinished, &program).map_err(|error| Failure::host(&attempt, error))?;
        Ok(program)
    }
}

impl Library {
    fn is_installed(&self) -> bool {
        let mut compiler = Command::new("gcc");
        compiler.args(["-E", "-x", "c", "-o", "/dev/null", "-"]);
        let started = compiler.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(mut running) = started else {
            return false;
        };
        // Dropped at once: the compiler reads to the end. One that ended before does not mind, and says so by its status.
        let written = running.stdin.take().map(|mut input| writeln!(input, "#include <{}>", self.header));
        let ended = running.wait();
        matches!(written, Some(Ok(()))) && ended.is_ok_and(|status| status.success())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms;

    fn workload(job: &str) -> Workload {
        let job: Job = toml::from_str(job).unwrap();
        let folder = project::root().join("workloads/include");
        Workload { name: "x".into(), folder, job }
    }

    #[test]
    fn a_library_that_is_there_is_not_missing() {
        assert_eq!(workload("title = 'x'\nbuild = ''").missing(), None);
        let job = "title = 'x'\nbuild = ''\nneeds = [{ header = 'stdio.h', package = 'libc6-dev' }]";
        assert_eq!(workload(job).missing(), None);
    }

    #[test]
    fn a_missing_library_is_named_with_its_package_and_nothing_is_built() {
        let job =
            "title = 'x'\nbuild = 'exit 1'\nneeds = [{ header = 'no/such.h', package = 'libnone-dev' }]";
        let reason = workload(job).missing().unwrap();
        assert!(reason.ends_with("(as root: apt-get install libnone-dev)"), "{reason}");
        let failure = workload(job).build().unwrap_err();
        assert!(failure.sentence().unwrap().contains("libnone-dev"), "{failure:?}");
    }

    #[test]
    fn two_that_build_one_workload_at_once_both_get_it_whole() {
        // What it writes to is nobody else's, from the beginning to the end.
        let job = r#"
            title = 'x'
            build = 'test ! -e "$OUTPUT"; printf half > "$OUTPUT"; sleep 0.3; test "$(cat "$OUTPUT")" = half; printf whole > "$OUTPUT"'
        "#;
        let mut shared = workload(job);
        shared.name = format!("built-at-once-{}", std::process::id());
        let programs: Vec<_> = std::thread::scope(|scope| {
            let builds = [(); 2].map(|()| scope.spawn(|| shared.build().unwrap()));
            builds.into_iter().map(|build| build.join().unwrap()).collect()
        });
        assert_eq!(programs[0], programs[1]);
        assert_eq!(fs::read_to_string(&programs[0]).unwrap(), "whole");
        fs::remove_file(&programs[0]).unwrap();
    }

    #[test]
    fn every_job_can_be_read() {
        let folders = fs::read_dir(project::root().join("workloads")).unwrap().flatten();
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let found: Vec<_> = names.filter_map(|name| Workload::find(&name)).collect();
        assert!(found.len() > 10 && found.iter().all(Result::is_ok), "{found:?}");
    }

    #[test]
    fn what_bench_needs_of_every_workload_is_there() {
        let all = Workload::all_measured().unwrap();
        assert!(!all.is_empty());
        for (workload, bench) in &all {
            let name = &workload.name;
            assert!(
                bench.cpus.iter().all(|cpus| (1..=64).contains(cpus)) && !bench.cpus.is_empty(),
                "{name}: cpus"
            );
            assert!(mechanisms::parse(&bench.without).is_ok(), "{name}: without");
            assert!(bench.question.ends_with(['.', '?']), "{name}: the question is no sentence");
        }
        let orders: Vec<_> = all.iter().map(|(_, bench)| bench.order).collect();
        assert!(orders.is_sorted());
    }

    #[test]
    fn a_workload_is_found_by_its_folders_name_only() {
        assert!(Workload::find("mprotect-flip").is_some_and(|found| found.is_ok()));
        assert!(Workload::find("no-such").is_none() && Workload::find("../workloads/litmus").is_none());
    }
}
