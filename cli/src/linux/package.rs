//! Debian's kernel as a package: fetched, unpacked below `.cache/linux`, never installed.
//!
//! A package gets its folder's name by one rename when it is complete, so whatever interrupts a fetch leaves nothing that
//! [`newest`] would take for a kernel. Whoever cannot fetch (no Debian, no package lists, no network) gets a sentence that says
//! which of these it was and what to do instead.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;

/// Debian's name for the newest kernel made for virtual machines; it depends on the package that has the image.
const NEWEST: &str = "linux-image-cloud-amd64";
/// What a fetch is called until it is complete.
const UNFINISHED: &str = ".fetching-";
/// A fetch that was interrupted is no longer anybody's after this time.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// So that a network that swallows packets costs a minute, not ten.
const PATIENCE: [&str; 4] = ["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"];

/// The system's package tools.
pub(super) struct Tools {
    /// Where to look for them; none: as everybody does.
    pub(super) path: Option<OsString>,
    /// Whether the package lists may be renewed.
    pub(super) is_root: bool,
}

impl Tools {
    /// Those of this machine.
    pub(super) fn of_this_machine() -> Self {
        // The process's own folder in /proc belongs to its effective user.
        let owner = fs::metadata("/proc/self").map(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata));
        Tools { path: None, is_root: owner.is_ok_and(|owner| owner == 0) }
    }

    /// What a tool prints.
    ///
    /// # Errors
    /// The last line of its complaint, or that it is missing.
    fn answer(&self, name: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
        let mut command = Command::new(name);
        command.args(arguments).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        let output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("{name} is missing"),
            _ => format!("{name}: {error}"),
        })?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let last = complaint.trim().lines().last().unwrap_or("it failed").trim_start_matches("E: ");
            return Err(format!("{name} says: {last}"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn renew_lists(&self, folder: &Path) -> Result<(), String> {
        if !self.is_root {
            return Err(format!("its package lists do not have {NEWEST}; as root: apt-get update"));
        }
        eprintln!("ceasefire: renewing the package lists: apt-get update");
        self.answer("apt-get", &[&["update"], &PATIENCE[..]].concat(), folder).map(drop)
    }

    /// The package that [`NEWEST`] stands for; none when the lists do not have it.
    fn newest(&self, folder: &Path) -> Option<String> {
        let depends = self.answer("apt-cache", &["depends", "--important", NEWEST], folder).ok()?;
        depends.lines().find_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned)
    }

    /// Leaves the newest package in `folder`.
    fn download(&self, folder: &Path) -> Result<(), String> {
        for tool in ["apt-get", "apt-cache", "dpkg"] {
            self.answer(tool, &["--version"], folder)
                .map_err(|why| format!("{why} (not a Debian system?)"))?;
        }
        let newest = self.newest(folder);
        let fresh = newest.is_none();
        if fresh {
            self.renew_lists(folder)?;
        }
        let package = newest
            .or_else(|| self.newest(folder))
            .ok_or_else(|| format!("this system's package lists do not have {NEWEST}"))?;
        let fetch = |package: &str| {
            self.answer("apt-get", &[&["download", package], &PATIENCE[..]].concat(), folder).map(drop)
        };
        match fetch(&package) {
            // The archive may have moved on since the lists were made.
            Err(_) if !fresh && self.is_root => {
                self.renew_lists(folder)?;
                fetch(&self.newest(folder).unwrap_or(package))
            }
            result => result,
        }
    }
}

/// Fetches and unpacks the newest package into a folder of `cache` that is named after it.
///
/// # Errors
/// A host failure whose sentence says why there is no kernel, and what to do.
pub(super) fn fetch(cache: &Path, tools: &Tools) -> Result<(), Failure> {
    let refused = |why: String| {
        Failure::host("get a Linux kernel to compare with", format!("{why}; --linux PATH takes another one"))
    };
    let failed = |error: io::Error| refused(format!("{}: {error}", cache.display()));
    fs::create_dir_all(cache).map_err(failed)?;
    forget_unfinished(cache);
    let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(cache).map_err(failed)?;
    tools.download(folder.path()).map_err(refused)?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let archive = entries(folder.path())
        .into_iter()
        .find(is_package)
        .ok_or_else(|| refused("apt-get left no package behind".into()))?;
    let unpacked = folder.path().join("unpacked");
    let [from, to] = [&archive, &unpacked].map(|path| path.display().to_string());
    tools.answer("dpkg", &["-x", &from, &to], folder.path()).map_err(refused)?;
    if image_in(&unpacked).is_none() {
        return Err(refused("the package has no boot/vmlinuz".into()));
    }
    let place = cache.join(archive.file_stem().unwrap_or(NEWEST.as_ref()));
    match fs::rename(&unpacked, &place) {
        // Somebody else fetched the same package meanwhile.
        Err(_) if image_in(&place).is_some() => Ok(()),
        result => result.map_err(failed),
    }
}

/// What is left of fetches that were interrupted long ago.
fn forget_unfinished(cache: &Path) {
    for path in entries(cache) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let age = fs::metadata(&path).and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
        if name.starts_with(UNFINISHED) && age.is_ok_and(|age| age.is_ok_and(|age| age > FORGOTTEN)) {
            // What cannot be removed takes room and does no harm.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The newest unpacked package: its name and its image.
pub(super) fn newest(cache: &Path) -> Option<(String, PathBuf)> {
    let packages = entries(cache).into_iter().rev();
    packages
        .filter_map(|package| {
            let name = package.file_name()?.to_string_lossy().into_owned();
            Some((name, image_in(&package)?))
        })
        .find(|(name, _)| !name.starts_with(UNFINISHED))
}

fn image_in(package: &Path) -> Option<PathBuf> {
    let is_image =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"));
    entries(&package.join("boot")).into_iter().rfind(is_image)
}

/// A folder's entries in order; none when it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A machine whose package tools do what the scripts say.
    struct Machine {
        folder: tempfile::TempDir,
        tools: Tools,
    }

    impl Machine {
        fn new(is_root: bool, scripts: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let programs = folder.path().join("bin");
            fs::create_dir(&programs).unwrap();
            for (name, script) in scripts {
                let path = programs.join(name);
                fs::write(
                    &path,
                    format!("#!/bin/sh\nPATH=/usr/bin:/bin\nstate={}\n{script}\n", folder.path().display()),
                )
                .unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let tools = Tools { path: Some(programs.into()), is_root };
            Machine { folder, tools }
        }

        fn cache(&self) -> PathBuf {
            self.folder.path().join("cache")
        }

        fn fetch(&self) -> Result<(), Failure> {
            fetch(&self.cache(), &self.tools)
        }

        /// The sentence with which a fetch fails. Nothing must be left behind.
        fn refusal(&self) -> String {
            let failure = self.fetch().unwrap_err();
            assert_eq!(failure.status(), 4);
            assert_eq!(entries(&self.cache()), Vec::<PathBuf>::new());
            let sentence = failure.sentence().unwrap().to_owned();
            assert!(
                sentence.starts_with("cannot get a Linux kernel") && sentence.contains("--linux PATH"),
                "{sentence}"
            );
            assert_eq!(sentence.lines().count(), 1, "{sentence}");
            sentence
        }
    }

    const DEPENDS: &str = r#"[ "$1" = --version ] || echo "  Depends: linux-image-9.9""#;
    const DOWNLOAD: &str =
        r#"case $1 in download) : > "linux-image-9.9_1_amd64.deb";; update) touch $state/updated;; esac"#;
    const UNPACK: &str =
        r#"[ "$1" = --version ] || { mkdir -p "$3/boot"; echo image > "$3/boot/vmlinuz-9.9"; }"#;

    #[test]
    fn a_package_is_fetched_whole() {
        let machine = Machine::new(false, &[("apt-get", DOWNLOAD), ("apt-cache", DEPENDS), ("dpkg", UNPACK)]);
        machine.fetch().unwrap();
        let (name, image) = newest(&machine.cache()).unwrap();
        assert_eq!(name, "linux-image-9.9_1_amd64");
        assert!(image.ends_with("boot/vmlinuz-9.9"));
        machine.fetch().unwrap();
        assert_eq!(entries(&machine.cache()).len(), 1);
    }

    #[test]
    fn a_machine_without_apt_is_told_so() {
        assert!(Machine::new(true, &[]).refusal().contains("apt-get is missing"));
        let no_dpkg = Machine::new(true, &[("apt-get", DOWNLOAD), ("apt-cache", DEPENDS)]);
        assert!(no_dpkg.refusal().contains("dpkg is missing"));
    }

    #[test]
    fn package_lists_are_renewed_by_root_only() {
        let after_update =
            r#"[ "$1" = --version ] || { [ -e $state/updated ] && echo " Depends: linux-image-9.9"; }"#;
        let scripts = [("apt-get", DOWNLOAD), ("apt-cache", after_update), ("dpkg", UNPACK)];
        assert!(Machine::new(false, &scripts).refusal().contains("as root: apt-get update"));
        let by_root = Machine::new(true, &scripts);
        by_root.fetch().unwrap();
        assert!(newest(&by_root.cache()).is_some());
        let never = [("apt-get", DOWNLOAD), ("apt-cache", r#"[ "$1" = --version ]"#), ("dpkg", UNPACK)];
        assert!(Machine::new(true, &never).refusal().contains("do not have linux-image-cloud-amd64"));
    }

    #[test]
    fn without_a_network_the_sentence_says_so() {
        let offline =
            r#"[ "$1" = --version ] || { echo "E: Could not resolve 'deb.debian.org'" >&2; exit 100; }"#;
        for is_root in [false, true] {
            let machine =
                Machine::new(is_root, &[("apt-get", offline), ("apt-cache", DEPENDS), ("dpkg", UNPACK)]);
            assert!(machine.refusal().contains("Could not resolve"));
        }
    }

    #[test]
    fn a_damaged_package_is_not_kept() {
        let broken = r#"[ "$1" = --version ] || { mkdir -p "$3/usr"; echo "dpkg-deb: error: unexpected end of file" >&2; exit 2; }"#;
        let machine = Machine::new(false, &[("apt-get", DOWNLOAD), ("apt-cache", DEPENDS), ("dpkg", broken)]);
        assert!(machine.refusal().contains("unexpected end of file"));
        let empty = [("apt-get", DOWNLOAD), ("apt-cache", DEPENDS), ("dpkg", ":")];
        assert!(Machine::new(false, &empty).refusal().contains("no boot/vmlinuz"));
    }

    #[test]
    fn the_newest_package_in_the_cache_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(newest(cache.path()), None);
        for version in ["linux_6.1.0-50", "linux_6.1.0-56", ".fetching-x"] {
            let boot = cache.path().join(version).join("boot");
            fs::create_dir_all(&boot).unwrap();
            fs::write(boot.join("config"), "").unwrap();
            fs::write(boot.join("vmlinuz-x"), version).unwrap();
        }
        fs::create_dir_all(cache.path().join("zzz-incomplete/boot")).unwrap();
        assert_eq!(newest(cache.path()).unwrap().0, "linux_6.1.0-56");
    }
}
