//! What a program that is not whole needs beside it: the interpreter that it names, and the shared libraries that this will look for.
//!
//! They are taken from the host, and lie in the guest where they lie on the host, symbolic links included, so that the interpreter
//! finds there what the host's would have found here. They are sought as `ld.so(8)` says: RUNPATH or RPATH of who needs
//! them, LD_LIBRARY_PATH of the guest's environment, the folders of `/etc/ld.so.conf`, the standard folders. Nothing of the program is run for
//! this. The host's index of libraries (`/etc/ld.so.cache`) is packed too: with it the interpreter knows the folders that
//! are not standard.
//!
//! What a program opens by name while it runs (plug-ins, a language's modules) is in no file's list, and is packed with `--file`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::initramfs::{Initramfs, LINKS};
use crate::interpreter::elf_interpreter;

/// The host's index of libraries.
const INDEX: &str = "/etc/ld.so.cache";
/// Where libraries are when nothing else says so: Debian's folders, and everybody's.
const STANDARD: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// As deep as files that include each other are read.
const INCLUSIONS: usize = 8;

/// What an ELF file says of the libraries that it needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    names: Vec<OsString>,
    /// Folders to look in, `$ORIGIN` not yet replaced.
    folders: Vec<OsString>,
}

/// A library of the host.
struct Library {
    path: PathBuf,
    content: Vec<u8>,
    needs: Needs,
}

impl Library {
    /// Reads it. `None` if there is no x86-64 library: folders may hold those of other processors under the same name.
    fn read(path: PathBuf) -> Option<Self> {
        let content = fs::read(&path).ok()?;
        let needs = needs(&content)?;
        Some(Library { path, content, needs })
    }
}

/// The search for one program's libraries.
pub(crate) struct Libraries<'a> {
    archive: &'a mut Initramfs,
    /// Folders of the guest's LD_LIBRARY_PATH.
    preferred: Vec<PathBuf>,
    configured: Vec<PathBuf>,
    /// Names that are packed, or will be.
    known: BTreeSet<OsString>,
}

impl<'a> Libraries<'a> {
    pub(crate) fn new(archive: &'a mut Initramfs, environment: &[OsString]) -> Self {
        let preferred =
            environment.iter().filter_map(|setting| setting.as_bytes().strip_prefix(b"LD_LIBRARY_PATH="));
        let preferred = preferred.flat_map(|value| std::env::split_paths(OsStr::from_bytes(value))).collect();
        let mut configured = Vec::new();
        read_configuration(Path::new("/etc/ld.so.conf"), INCLUSIONS, &mut configured);
        configured.extend(STANDARD.map(PathBuf::from));
        Libraries { archive, preferred, configured, known: BTreeSet::new() }
    }

    /// Packs the interpreter and the libraries of a program whose content this is, and which the guest finds at `path`.
    ///
    /// # Errors
    /// A sentence that names what is missing.
    pub(crate) fn pack_for(&mut self, path: &Path, content: &[u8], interpreter: &[u8]) -> Result<(), String> {
        let interpreter = Path::new(OsStr::from_bytes(interpreter));
        if self.archive.content(interpreter.as_os_str().as_bytes()).is_none() {
            if !interpreter.is_file() {
                return Err(format!(
                    "its interpreter {} is not on this host (add --file HOST:{0}, and --file for each library)",
                    interpreter.display()
                ));
            }
            pack_as_on_the_host(self.archive, interpreter, read(interpreter)?)?;
        }
        self.known.extend(interpreter.file_name().map(OsStr::to_owned));
        if Path::new(INDEX).is_file() {
            pack_as_on_the_host(self.archive, Path::new(INDEX), read(Path::new(INDEX))?)?;
        }
        // A program's $ORIGIN is where its file is, whatever links it was started over.
        let place = self.archive.place(path.as_os_str().as_bytes());
        self.pack_needs(place.as_deref().map_or(path, |place| Path::new(OsStr::from_bytes(place))), content)
    }

    /// Packs the libraries that a file which lies in the guest at `path` needs, if it is an ELF file.
    ///
    /// # Errors
    /// A sentence that names what is missing.
    fn pack_needs(&mut self, path: &Path, content: &[u8]) -> Result<(), String> {
        let needs =
            needs(content).ok_or_else(|| format!("the dynamic section of {} is damaged", path.display()))?;
        let mut waiting = vec![(path.to_owned(), needs)];
        while let Some((path, needs)) = waiting.pop() {
            for name in &needs.names {
                if !self.known.insert(name.clone()) || self.archive.has_file_named(name.as_bytes()) {
                    continue;
                }
                let found = self.find(name, &needs, &path).ok_or_else(|| {
                    format!(
                        "{} needs the library {}, which is in none of the folders where the interpreter would look \
                         (add --file HOST:{1}, or --file and --env LD_LIBRARY_PATH=FOLDER)",
                        path.display(),
                        name.display()
                    )
                })?;
                pack_as_on_the_host(self.archive, &found.path, found.content)?;
                waiting.push((found.path, found.needs));
            }
        }
        Ok(())
    }

    /// Packs what the host has of what any packed file needs: it may be a program that is to be started, or a library that is to be
    /// opened by name. What the host has not is for the guest's interpreter to complain of, if the file is ever used.
    pub(crate) fn pack_for_companions(&mut self) {
        for path in self.archive.files_that_begin_with(b"\x7fELF") {
            let content = self.archive.content(&path).unwrap_or_default().to_vec();
            let path = PathBuf::from(OsString::from_vec(path));
            let _ = match elf_interpreter(&content) {
                Ok(Some(interpreter)) => self.pack_for(&path, &content, &interpreter),
                _ => self.pack_needs(&path, &content),
            };
        }
    }

    /// Where the host has a library that `of` needs.
    fn find(&self, name: &OsStr, needs: &Needs, of: &Path) -> Option<Library> {
        if name.as_bytes().contains(&b'/') {
            return Library::read(name.into());
        }
        let origin = of.parent().unwrap_or(Path::new("/"));
        let own = needs.folders.iter().map(|folder| with_origin(folder, origin));
        let folders = own.chain(self.preferred.iter().cloned()).chain(self.configured.iter().cloned());
        folders.map(|folder| folder.join(name)).find_map(Library::read)
    }
}

/// Packs a file of the host, whose content this is, under its own name, and the symbolic links on the way to it.
///
/// Where a link's place is taken by a folder, the folder stays, and the file is packed below it.
///
/// # Errors
/// A sentence: it is gone, or its place is taken.
pub(crate) fn pack_as_on_the_host(
    archive: &mut Initramfs,
    path: &Path,
    content: Vec<u8>,
) -> Result<(), String> {
    let failed = |error| format!("cannot pack {}: {error}", path.display());
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
    let whole = std::path::absolute(path).map_err(failed)?;
    let mut waiting = names_of(&whole);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = waiting.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        match fs::read_link(&next) {
            Ok(target) if !archive.contains_directory(next.as_os_str().as_bytes()) => {
                links += 1;
                if links > LINKS {
                    return Err(format!("cannot pack {}: too many symbolic links", path.display()));
                }
                archive.link(next.as_os_str().as_bytes(), target.as_os_str().as_bytes())?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                waiting.extend(names_of(&target));
            }
            _ => here = next,
        }
    }
    archive.file(here.as_os_str().as_bytes(), mode, content)
}

/// The names in a path, the last first.
fn names_of(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The content of a file of the host that is to be packed.
///
/// # Errors
/// A sentence: it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot pack {}: {error}", path.display()))
}

fn with_origin(folder: &OsStr, origin: &Path) -> PathBuf {
    let text = folder.to_string_lossy();
    let origin = origin.to_string_lossy();
    PathBuf::from(text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
}

/// The folders that a file of the form of `/etc/ld.so.conf` lists, with those of the files that it includes. What cannot be read lists
/// nothing, as for the interpreter.
fn read_configuration(file: &Path, depth: usize, folders: &mut Vec<PathBuf>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        match line.strip_prefix("include") {
            Some(pattern) if depth > 0 => {
                for file in matching(Path::new(pattern.trim())) {
                    read_configuration(&file, depth - 1, folders);
                }
            }
            Some(_) => {}
            None if line.starts_with('/') => folders.push(line.into()),
            None => {}
        }
    }
}

/// The files of a folder that a pattern like `/etc/ld.so.conf.d/*.conf` means, in order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else { return Vec::new() };
    let name = name.to_string_lossy();
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.into()] };
    let is_meant = |path: &PathBuf| {
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        found.len() >= name.len() - 1 && found.starts_with(start) && found.ends_with(end)
    };
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_meant)
        .collect();
    found.sort();
    found
}

/// What an ELF file needs; `None` if it is not for this processor, or is damaged. A file without a dynamic section needs nothing.
fn needs(content: &[u8]) -> Option<Needs> {
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != object::elf::EM_X86_64 {
        return None;
    }
    let segments = header.program_headers(endian, content).ok()?;
    let Some(entries) = segments.iter().find_map(|segment| segment.dynamic(endian, content).ok()?) else {
        return Some(Needs::default());
    };
    let value = |tag| entries.iter().find(|one| one.tag(endian) == tag).map(|one| one.d_val(endian));
    let (start, length) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let strings =
        segments.iter().find_map(|segment| segment.data_range(endian, content, start, length).ok()?)?;
    let string = |offset: u64| -> Option<OsString> {
        let rest = strings.get(usize::try_from(offset).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(OsStr::from_bytes(&rest[..end]).to_owned())
    };
    let all = |tag| {
        entries
            .iter()
            .filter(move |one| one.tag(endian) == tag)
            .map(|one| string(one.d_val(endian)))
            .collect::<Option<Vec<_>>>()
    };
    let paths = match all(DT_RUNPATH)? {
        paths if paths.is_empty() => all(DT_RPATH)?,
        paths => paths,
    };
    let folders = paths
        .iter()
        .flat_map(|path| path.as_bytes().split(|byte| *byte == b':'))
        .filter(|folder| !folder.is_empty())
        .map(|folder| OsStr::from_bytes(folder).to_owned())
        .collect();
    Some(Needs { names: all(DT_NEEDED)?, folders })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_needs_the_c_library() {
        let own = fs::read("/proc/self/exe").unwrap();
        let needs = needs(&own).unwrap();
        assert!(needs.names.iter().any(|name| name == "libc.so.6"), "{needs:?}");
    }

    #[test]
    fn damaged_files_need_nothing_and_crash_nobody() {
        let own = fs::read("/proc/self/exe").unwrap();
        for length in (0..4096).step_by(61) {
            let _ = needs(&own[..length]);
        }
        let mut damaged = own.clone();
        for index in (0..2048).step_by(7) {
            let kept = std::mem::replace(&mut damaged[index], 0xff);
            let _ = needs(&damaged);
            damaged[index] = kept;
        }
        assert_eq!(needs(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn the_interpreter_and_the_libraries_are_packed_where_the_host_has_them() {
        let own = fs::read("/proc/self/exe").unwrap();
        let mut archive = Initramfs::new();
        let mut libraries = Libraries::new(&mut archive, &[]);
        libraries.pack_for(Path::new("/program"), &own, b"/lib64/ld-linux-x86-64.so.2").unwrap();
        assert!(archive.content(b"/lib64/ld-linux-x86-64.so.2").is_some());
        assert!(archive.has_file_named(b"libc.so.6"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let own = fs::read("/proc/self/exe").unwrap();
        let mut archive = Initramfs::new();
        let error = Libraries::new(&mut archive, &[])
            .pack_for(Path::new("/program"), &own, b"/lib/no-such-interpreter")
            .unwrap_err();
        assert!(error.contains("/lib/no-such-interpreter is not on this host"), "{error}");
    }

    #[test]
    fn a_library_that_the_host_has_not_is_named() {
        let mut own = fs::read("/proc/self/exe").unwrap();
        for at in 0..own.len() - 9 {
            if &own[at..at + 9] == b"libc.so.6" {
                own[at..at + 9].copy_from_slice(b"libc.so.0");
            }
        }
        let mut archive = Initramfs::new();
        let error = Libraries::new(&mut archive, &[])
            .pack_for(Path::new("/program"), &own, b"/lib64/ld-linux-x86-64.so.2")
            .unwrap_err();
        assert!(error.contains("/program needs the library libc.so.0"), "{error}");
    }

    #[test]
    fn links_are_packed_as_links_unless_a_folder_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        fs::write(root.join("usr/lib/library.so.1.2"), "content").unwrap();
        std::os::unix::fs::symlink("usr/lib", root.join("lib")).unwrap();
        std::os::unix::fs::symlink("library.so.1.2", root.join("usr/lib/library.so")).unwrap();
        let name = |rest: &str| root.join(rest).into_os_string().into_encoded_bytes();

        let mut archive = Initramfs::new();
        pack_as_on_the_host(&mut archive, &root.join("lib/library.so"), b"content".into()).unwrap();
        assert_eq!(archive.content(&name("lib/library.so")), Some(&b"content"[..]));
        assert_eq!(archive.content(&name("usr/lib/library.so.1.2")), Some(&b"content"[..]));

        let mut archive = Initramfs::new();
        archive.directory(&name("lib"), 0o755).unwrap();
        pack_as_on_the_host(&mut archive, &root.join("lib/library.so"), b"content".into()).unwrap();
        assert_eq!(archive.content(&name("lib/library.so.1.2")), Some(&b"content"[..]));
    }

    #[test]
    fn origin_is_the_folder_of_who_needs_the_library() {
        let found = with_origin(OsStr::new("$ORIGIN/../lib"), Path::new("/opt/it/bin"));
        assert_eq!(found, Path::new("/opt/it/bin/../lib"));
    }
}
