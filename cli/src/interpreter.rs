//! What starts a program: the interpreter in the first line of a script, or the one that a dynamically linked ELF program names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::initramfs::Initramfs;
use crate::libraries::{self, Libraries};
use crate::program::is_executable;

/// Scripts of which each is the interpreter of the one before: as many as Linux starts.
const SCRIPTS: usize = 5;

/// Packs the interpreters that the program at `path` names, one after the other, and the libraries of those that are no scripts.
///
/// # Errors
/// A sentence: what it is instead of an x86-64 ELF program or a script, or what is missing.
pub(crate) fn pack_for(
    archive: &mut Initramfs,
    path: &Path,
    content: &[u8],
    environment: &[OsString],
) -> Result<(), String> {
    let (mut path, mut content) = (path.to_owned(), content.to_vec());
    for _ in 0..=SCRIPTS {
        let Some(words) = script_interpreter(&content) else {
            return pack_libraries(archive, &path, &content, environment);
        };
        path = PathBuf::from(&words[0]);
        content = bring(archive, &path)?;
        if let (true, Some(name)) = (path.ends_with("env"), started_by_env(&words[1..])) {
            pack_libraries(archive, &path, &content, environment)?;
            path = find_for_env(archive, name, environment)?;
            content = bring(archive, &path)?;
        }
    }
    Err(format!(
        "its interpreter is a script, whose interpreter is a script, and so on, more than {SCRIPTS} times"
    ))
}

/// The content of a script's interpreter, which is packed unless it is there.
fn bring(archive: &mut Initramfs, interpreter: &Path) -> Result<Vec<u8>, String> {
    if let Some(content) = archive.content(interpreter.as_os_str().as_bytes()) {
        return Ok(content.to_vec());
    }
    if !interpreter.is_file() {
        let shown = interpreter.display();
        return Err(format!(
            "it is a script for {shown}, which is not on this host (add --file HOST:{shown})"
        ));
    }
    let content = libraries::read(interpreter)?;
    libraries::pack_as_on_the_host(archive, interpreter, content.clone())?;
    Ok(content)
}

/// The program that `env` is to start: its first word that is no option (`env -S python3 -u`) and sets no variable.
fn started_by_env(words: &[OsString]) -> Option<&OsStr> {
    let is_program =
        |word: &&OsString| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    words.iter().find(is_program).map(OsString::as_os_str)
}

/// Where `env` will find a program in the guest, which has it already or is to get it from the host.
fn find_for_env(archive: &Initramfs, name: &OsStr, environment: &[OsString]) -> Result<PathBuf, String> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = environment.iter().rev().find_map(|setting| setting.as_bytes().strip_prefix(b"PATH="));
    let path = OsStr::from_bytes(path.unwrap_or_default());
    let is_there =
        |place: &PathBuf| archive.content(place.as_os_str().as_bytes()).is_some() || is_executable(place);
    std::env::split_paths(path).map(|folder| folder.join(name)).find(is_there).ok_or_else(|| {
        format!(
            "it is a script for {}, which is in no folder of the guest's PATH, {} (add --file HOST:GUEST or --env PATH=…)",
            name.display(),
            path.display()
        )
    })
}

fn pack_libraries(
    archive: &mut Initramfs,
    path: &Path,
    content: &[u8],
    environment: &[OsString],
) -> Result<(), String> {
    match elf_interpreter(content)? {
        Some(interpreter) => Libraries::new(archive, environment).pack_for(path, content, &interpreter),
        None => Ok(()),
    }
}

/// What the first line of a script says is to be started: the program, and a word for it.
fn script_interpreter(content: &[u8]) -> Option<Vec<OsString>> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    (!words.is_empty()).then_some(words)
}

/// The interpreter that the program names, if any; an error says why this is no program for the guest.
pub(crate) fn elf_interpreter(content: &[u8]) -> Result<Option<Vec<u8>>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_programs_are_refused_not_crashed_on() {
        let good = std::fs::read("/proc/self/exe").unwrap();
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
        assert_eq!(script_interpreter(b"#! /bin/sh -e\n"), Some(vec!["/bin/sh".into(), "-e".into()]));
        assert_eq!(script_interpreter(b"#!\n"), None);
        assert_eq!(script_interpreter(b"\x7fELF"), None);
    }

    /// What is packed for a script, with the guest's PATH.
    fn packed_for(script: &str) -> Result<Initramfs, String> {
        let mut archive = Initramfs::new();
        let environment = ["PATH=/usr/bin:/bin".into()];
        pack_for(&mut archive, Path::new("/script"), script.as_bytes(), &environment)?;
        Ok(archive)
    }

    #[test]
    fn a_script_has_its_interpreter_and_what_that_needs() {
        let archive = packed_for("#!/bin/bash\n").unwrap();
        assert!(archive.content(b"/bin/bash").unwrap().starts_with(b"\x7fELF"));
        assert!(archive.has_file_named(b"libc.so.6"));
        assert!(!archive.has_file_named(b"env"));
    }

    #[test]
    fn env_comes_with_what_it_starts() {
        for script in ["#!/usr/bin/env bash\n", "#! /usr/bin/env -S LANG=C bash -e\n"] {
            let archive = packed_for(script).unwrap();
            assert!(archive.content(b"/usr/bin/env").unwrap().starts_with(b"\x7fELF"));
            assert!(archive.content(b"/usr/bin/bash").unwrap().starts_with(b"\x7fELF"));
            assert!(archive.has_file_named(b"libc.so.6"));
            assert!(archive.content(b"/lib64/ld-linux-x86-64.so.2").is_some());
        }
    }

    #[test]
    fn env_starts_what_is_packed_already() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let mut archive = Initramfs::new();
        archive.file(b"/tools/mine", 0o755, own).unwrap();
        let environment = ["PATH=/usr/bin:/tools".into()];
        pack_for(&mut archive, Path::new("/script"), b"#!/usr/bin/env mine\n", &environment).unwrap();
        assert!(archive.has_file_named(b"libc.so.6"));
    }

    #[test]
    fn what_a_script_lacks_is_named() {
        let refusal = |script: &str| packed_for(script).unwrap_err();
        let none = refusal("#!/no/such/shell\n");
        assert!(none.contains("a script for /no/such/shell, which is not on this host"), "{none}");
        let none = refusal("#!/usr/bin/env no-such-shell\n");
        assert!(
            none.contains("a script for no-such-shell, which is in no folder of the guest's PATH"),
            "{none}"
        );
        assert_eq!(refusal("neither\n"), "it is not an x86-64 ELF program");
        assert_eq!(refusal("#!/etc/passwd\n"), "it is not an x86-64 ELF program");
    }

    #[test]
    fn as_many_scripts_are_followed_as_linux_starts() {
        let mut archive = Initramfs::new();
        archive.file(b"/1", 0o755, b"#!/bin/bash\n".to_vec()).unwrap();
        for number in 2..=6 {
            let script = format!("#!/{}\n", number - 1);
            archive.file(format!("/{number}").as_bytes(), 0o755, script.into_bytes()).unwrap();
        }
        let mut pack = |number: u32| {
            let (place, content) = (format!("/{number}"), format!("#!/{}\n", number - 1));
            pack_for(&mut archive, Path::new(&place), content.as_bytes(), &[])
        };
        assert_eq!(pack(5), Ok(()));
        let refusal = pack(6).unwrap_err();
        assert!(refusal.ends_with("more than 5 times"), "{refusal}");
    }
}
