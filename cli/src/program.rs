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

use object::Endianness;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use protocol::orders;

use crate::failure::Failure;
use crate::initramfs::Initramfs;

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
                Companion { host: self.host.join(&name), guest: self.guest.join(&name) }.pack(archive)?;
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

    /// Checks that the guest can start it, given what else is packed.
    ///
    /// # Errors
    /// A usage failure that says what it is instead of an x86-64 ELF program, or which interpreter it lacks.
    pub(crate) fn check(&self, packed: &Initramfs) -> Result<(), Failure> {
        let shown = self.host.display();
        if let Some(interpreter) = script_interpreter(&self.content) {
            let name = interpreter.display();
            return if packed.contains(interpreter.as_os_str().as_bytes()) {
                Ok(())
            } else {
                Err(Failure::usage(format!(
                    "cannot run {shown}: it is a script for {name}, which is not packed \
                     (add --file {name}, or for a shell script: run --file {shown} -- busybox sh {shown})"
                )))
            };
        }
        match elf_interpreter(&self.content) {
            Err(why) => Err(Failure::usage(format!("cannot run {shown}: {why}"))),
            Ok(Some(interpreter)) if !packed.contains(&interpreter) => {
                let name = String::from_utf8_lossy(&interpreter);
                Err(Failure::usage(format!(
                    "cannot run {shown}: it is dynamically linked and its interpreter {name} is not packed \
                     (link it with -static, or add --file {name} and --file for each library)"
                )))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Packs the program, its companions and the minimum that programs expect to find.
    ///
    /// # Errors
    /// A usage failure when a companion cannot be read, or two claim one path as a file and as a folder.
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
        let guest = self.guest.as_os_str().as_bytes();
        archive.file(guest, 0o755, self.content.clone()).map_err(Failure::Usage)?;
        for companion in companions {
            companion.pack(&mut archive)?;
        }
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
    let executable = |candidate: &PathBuf| {
        fs::metadata(candidate).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(executable).ok_or_else(|| {
        let name = name.display();
        let hint = if Path::new(name.to_string().as_str()).exists() {
            format!(" (did you mean ./{name}?)")
        } else {
            String::new()
        };
        Failure::usage(format!("cannot run {name}: there is no such program in PATH{hint}"))
    })
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

fn script_interpreter(content: &[u8]) -> Option<PathBuf> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let interpreter = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(interpreter).into())
}

/// The interpreter that the program names, if any; an error says why this is no program for the guest.
fn elf_interpreter(content: &[u8]) -> Result<Option<Vec<u8>>, String> {
    const NOT_ELF: &str = "it is not an x86-64 ELF program";
    if !content.starts_with(b"\x7fELF") {
        return Err(NOT_ELF.into());
    }
    if content.get(4) != Some(&2) {
        return Err("it is a 32-bit ELF file; the guest runs x86-64 programs".into());
    }
    let header = FileHeader64::<Endianness>::parse(content).map_err(|_| "its ELF header is damaged")?;
    let endian = header.endian().map_err(|_| "its ELF header is damaged")?;
    if header.e_machine(endian) != EM_X86_64 || endian != Endianness::Little {
        return Err("it is an ELF file for another processor; the guest runs x86-64 programs".into());
    }
    if ![ET_EXEC, ET_DYN].contains(&header.e_type(endian)) {
        return Err("it is an ELF file but not a program (an object file or a core dump)".into());
    }
    let segments = header.program_headers(endian, content).map_err(|_| "its program headers are damaged")?;
    if segments.is_empty() || header.e_entry(endian) == 0 {
        return Err("it is an ELF file but not a program (it has no entry point)".into());
    }
    for segment in segments {
        match segment.interpreter(endian, content) {
            Ok(Some(interpreter)) => return Ok(Some(interpreter.to_vec())),
            Ok(None) => {}
            Err(_) => return Err("its interpreter's name lies outside the file".into()),
        }
    }
    Ok(None)
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
    fn a_companion_names_its_place_or_keeps_it() {
        let kept = Companion::parse(OsStr::new("data/x"));
        assert_eq!((kept.host.as_path(), kept.guest.as_path()), (Path::new("data/x"), Path::new("/data/x")));
        let placed = Companion::parse(OsStr::new("data/x:/y"));
        assert_eq!((placed.host.as_path(), placed.guest.as_path()), (Path::new("data/x"), Path::new("/y")));
    }

    #[test]
    fn damaged_programs_are_refused_not_crashed_on() {
        let good = fs::read("/proc/self/exe").unwrap();
        assert!(elf_interpreter(&good).unwrap().is_some());
        for length in (0..256).chain([good.len() / 2]) {
            let _ = elf_interpreter(&good[..length]);
        }
        let mut damaged = good[..4096].to_vec();
        for index in 0..128 {
            let kept = damaged[index];
            damaged[index] = 0xff;
            let _ = elf_interpreter(&damaged);
            damaged[index] = kept;
        }
        assert!(elf_interpreter(&good[..16]).is_err());
        assert!(elf_interpreter(b"MZ").is_err());
    }

    #[test]
    fn scripts_name_their_interpreter() {
        assert_eq!(script_interpreter(b"#! /bin/sh -e\n"), Some("/bin/sh".into()));
        assert_eq!(script_interpreter(b"#!\n"), None);
        assert_eq!(script_interpreter(b"\x7fELF"), None);
    }
}
