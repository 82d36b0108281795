//! The machine that a result comes from, and the versions of what took part.

use std::fs::read_to_string;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::project;
use crate::qemu;

/// The host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: Option<String>,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) kernel: Option<String>,
    /// Runnable processes, averaged over one minute, when the result was written.
    pub(crate) load: Option<f64>,
}

/// What took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    pub(crate) ceasefire: String,
    /// The commit, with `+` when files differ from it.
    pub(crate) commit: Option<String>,
    pub(crate) emulator: Option<String>,
    /// Null when no run was made on Linux.
    #[serde(default)]
    pub(crate) linux: Option<LinuxVersion>,
}

/// The Linux kernel that was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinuxVersion {
    /// Debian's package with its version, or the path that was given.
    pub(crate) name: String,
    /// Of the image.
    pub(crate) sha256: String,
}

impl Machine {
    /// The host that we run on, now.
    pub(crate) fn this() -> Self {
        let read = |path: &str| read_to_string(path).unwrap_or_default();
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
            load: load(),
        }
    }
}

/// Runnable processes on the host, averaged over the last minute.
pub(crate) fn load() -> Option<f64> {
    read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

impl Versions {
    /// The versions in use, without a Linux kernel.
    pub(crate) fn this() -> Self {
        Versions {
            ceasefire: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            emulator: qemu::version(),
            linux: None,
        }
    }
}

/// The commit of the sources that this command was built in.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let output = command.args(arguments).current_dir(project::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| !list.is_empty());
    Some(if changed { commit + "+" } else { commit })
}
