//! The program to run: found on the host, checked, and packed with what goes beside it.
//!
//! The rule for names: a path means the same in the guest. An absolute path keeps its place; a relative one is taken from the
//! guest's working directory, which is `/`. A bare name is sought in the host's PATH.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use protocol::orders;

use crate::failure::Failure;
use crate::initramfs::Initramfs;
use crate::interpreter;
use crate::libraries::{self, Libraries};

/// A file or folder to pack beside the program.
#[derive(Clone, Debug)]
pub(crate) struct Companion {
    pub(crate) host: PathBuf,
    pub(crate) guest: PathBuf,
}

impl Companion {
    /// Reads `HOST` or `HOST:GUEST`.
    pub(crate) fn parse(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        let (host, guest) = match bytes.iter().rposition(|byte| *byte == b':') {
            Some(colon) => (&bytes[..colon], &bytes[colon + 1..]),
            None => (bytes, bytes),
        };
        Companion {
            host: OsStr::from_bytes(host).into(),
            guest: guest_path(Path::new(OsStr::from_bytes(guest))),
        }
    }

    fn pack(&self, archive: &mut Initramfs) -> Result<(), Failure> {
        let metadata = fs::metadata(&self.host).map_err(|error| {
            Failure::usage(format!("cannot pack {}: {}", self.host.display(), reason(&error)))
        })?;
        let guest = self.guest.as_os_str().as_bytes();
        if metadata.is_dir() {
            archive.directory(guest, metadata.permissions().mode() & 0o7777).map_err(Failure::Usage)?;
            let entries = fs::read_dir(&self.host).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            for entry in
                entries.map_err(|error| Failure::host(format!("read {}", self.host.display()), error))?
            {
                let name = entry.file_name();
                let inner = Companion { host: self.host.join(&name), guest: self.guest.join(&name) };
                match fs::read_link(&inner.host) {
                    // It leads nowhere here; there it may.
                    Ok(target) if !inner.host.exists() => archive
                        .link(inner.guest.as_os_str().as_bytes(), target.as_os_str().as_bytes())
                        .map_err(Failure::Usage)?,
                    _ => inner.pack(archive)?,
                }
            }
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(Failure::usage(format!("cannot pack {}: not a file or folder", self.host.display())));
        }
        let content = fs::read(&self.host).map_err(|error| {
            Failure::usage(format!("cannot pack {}: {}", self.host.display(), reason(&error)))
        })?;
        archive.file(guest, metadata.permissions().mode() & 0o7777, content).map_err(Failure::Usage)
    }
}

/// A program's file, read, and its place in the guest.
#[derive(Debug)]
pub(crate) struct Program {
    host: PathBuf,
    guest: PathBuf,
    pub(crate) content: Vec<u8>,
}

impl Program {
    /// Reads the program `host`, to be packed at `guest`.
    ///
    /// # Errors
    /// A usage failure when it is missing, not a file, not executable or unreadable.
    pub(crate) fn open(host: &Path, guest: &Path) -> Result<Self, Failure> {
        let refuse = |why: &str| Err(Failure::usage(format!("cannot run {}: {why}", host.display())));
        let metadata = match fs::metadata(host) {
            Ok(metadata) => metadata,
            Err(error) => return refuse(&reason(&error)),
        };
        if metadata.is_dir() {
            return refuse("it is a folder");
        }
        if !metadata.is_file() {
            return refuse("it is not a regular file");
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return refuse("it is not executable");
        }
        match fs::read(host) {
            Ok(content) => Ok(Program { host: host.into(), guest: guest.into(), content }),
            Err(error) => refuse(&reason(&error)),
        }
    }

    /// Packs the program, its companions, what it cannot start without, and the minimum that programs expect to find.
    ///
    /// # Errors
    /// A usage failure when a companion cannot be read, or two claim one path as a file and as a folder; or one that says why the guest
    /// cannot start the program: what it is instead of an x86-64 ELF program or a script, or what it lacks.
    pub(crate) fn pack(
        &self,
        arguments: &[OsString],
        companions: &[Companion],
        environment: &[OsString],
    ) -> Result<Initramfs, Failure> {
        let mut archive = Initramfs::new();
        for (path, mode) in
            [("/tmp", 0o1777), ("/dev", 0o755), ("/proc", 0o555), ("/sys", 0o555), ("/root", 0o700)]
        {
            archive.directory(path.as_bytes(), mode).map_err(Failure::Usage)?;
        }
        let accounts: [(&[u8], &[u8]); 2] = [
            (b"/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
            (b"/etc/group", b"root:x:0:\nnogroup:x:65534:\n"),
        ];
        for (path, content) in accounts {
            archive.file(path, 0o644, content.to_vec()).map_err(Failure::Usage)?;
        }
        self.pack_applets(&mut archive)?;
        for companion in companions {
            companion.pack(&mut archive)?;
        }
        let guest = self.guest.as_os_str().as_bytes();
        if self.host == self.guest {
            // Over the same links: some programs look for what belongs to them from where their file is.
            libraries::pack_as_on_the_host(&mut archive, &self.host, self.content.clone())
        } else {
            archive.file(guest, 0o755, self.content.clone())
        }
        .map_err(Failure::Usage)?;
        interpreter::pack_for(&mut archive, &self.guest, &self.content, environment)
            .map_err(|why| Failure::usage(format!("cannot run {}: {why}", self.host.display())))?;
        Libraries::new(&mut archive, environment).pack_for_companions();
        let words = arguments.iter().map(|argument| argument.as_bytes());
        let arguments = ended_by_nul(std::iter::once(guest).chain(words));
        let environment = ended_by_nul(environment.iter().map(|entry| entry.as_bytes()));
        let orders: [(&str, Vec<u8>); 3] = [
            (orders::ARGUMENTS, arguments),
            (orders::ENVIRONMENT, environment),
            (orders::DIRECTORY, b"/".to_vec()),
        ];
        for (path, content) in orders {
            archive.file(path.as_bytes(), 0o400, content).map_err(Failure::Usage)?;
        }
        Ok(archive)
    }

    /// BusyBox is a whole user land in one file; its applets are links to it, where it says that it wants them.
    fn pack_applets(&self, archive: &mut Initramfs) -> Result<(), Failure> {
        if self.host.file_name() != Some(OsStr::new("busybox")) {
            return Ok(());
        }
        let Ok(listing) = Command::new(&self.host).arg("--list-full").output() else {
            return Ok(());
        };
        for applet in listing.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            archive.link(applet, self.guest.as_os_str().as_bytes()).map_err(Failure::Usage)?;
        }
        Ok(())
    }
}

fn ended_by_nul<'a>(words: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    words.flat_map(|word| word.iter().copied().chain([0])).collect()
}

/// The path of a program that may be named as in a shell.
///
/// # Errors
/// A usage failure when the name is empty, or no path and not in PATH.
pub(crate) fn locate(name: &OsStr) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        return Err(Failure::usage("cannot run a program without a name"));
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| is_executable(place)).ok_or_else(|| {
        let name = name.display();
        let hint = if Path::new(name.to_string().as_str()).exists() {
            format!(" (did you mean ./{name}?)")
        } else {
            String::new()
        };
        Failure::usage(format!("cannot run {name}: there is no such program in PATH{hint}"))
    })
}

/// Whether the host has a file there that may be executed.
pub(crate) fn is_executable(place: &Path) -> bool {
    fs::metadata(place).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where a host path lies in the guest.
pub(crate) fn guest_path(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "reading it is not permitted".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_the_same_in_the_guest() {
        assert_eq!(guest_path(Path::new("/bin/busybox")), Path::new("/bin/busybox"));
        assert_eq!(guest_path(Path::new("./a/../b")), Path::new("/b"));
        assert_eq!(guest_path(Path::new("../../b")), Path::new("/b"));
    }

    #[test]
    fn a_program_is_reached_over_the_links_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, link) = (root.join("home"), root.join("program"));
        fs::create_dir(&home).unwrap();
        fs::copy("/proc/self/exe", home.join("program")).unwrap();
        std::os::unix::fs::symlink("home/program", &link).unwrap();
        let program = Program::open(&link, &link).unwrap();
        let archive = program.pack(&[], &[], &[]).unwrap();
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        assert_eq!(archive.place(&bytes(&link)), Some(bytes(&home.join("program"))));
        assert_eq!(archive.content(&bytes(&link)), Some(&program.content[..]));

        let elsewhere = Program::open(&link, Path::new("/program")).unwrap().pack(&[], &[], &[]).unwrap();
        assert_eq!(elsewhere.place(b"/program"), Some(b"/program".to_vec()));
        assert_eq!(elsewhere.content(b"/program"), Some(&program.content[..]));
        assert_eq!(elsewhere.content(&bytes(&home.join("program"))), None);
    }

    #[test]
    fn a_companion_names_its_place_or_keeps_it() {
        let kept = Companion::parse(OsStr::new("data/x"));
        assert_eq!((kept.host.as_path(), kept.guest.as_path()), (Path::new("data/x"), Path::new("/data/x")));
        let placed = Companion::parse(OsStr::new("data/x:/y"));
        assert_eq!((placed.host.as_path(), placed.guest.as_path()), (Path::new("data/x"), Path::new("/y")));
    }
}
