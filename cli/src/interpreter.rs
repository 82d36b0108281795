//! What starts a program: the interpreter in the first line of a script, or the one that a dynamically linked ELF program names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::initramfs::Initramfs;
use crate::libraries::{self, Libraries};
use crate::program::locate;

/// As many interpreters, one named by the other, as Linux starts.
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
    for _ in 0..SCRIPTS {
        let Some(words) = script_interpreter(&content) else {
            return pack_libraries(archive, &path, &content, environment);
        };
        path = PathBuf::from(&words[0]);
        content = bring(archive, &path)?;
        // `env NAME` starts another one.
        if let (true, Some(name)) = (path.ends_with("env"), words.get(1)) {
            pack_libraries(archive, &path, &content, environment)?;
            path = locate(name)
                .map_err(|_| format!("it is a script for {}, which is not in PATH", name.display()))?;
            content = bring(archive, &path)?;
        }
    }
    Err("the interpreter of the script is a script, and so on: too many".into())
}

/// The content of a script's interpreter, which is packed unless it is there.
fn bring(archive: &mut Initramfs, interpreter: &Path) -> Result<Vec<u8>, String> {
    let name = interpreter.as_os_str().as_bytes();
    if archive.content(name).is_none() {
        let shown = interpreter.display();
        if !interpreter.is_file() {
            return Err(format!(
                "it is a script for {shown}, which is not on this host (add --file HOST:{shown})"
            ));
        }
        libraries::pack_as_on_the_host(archive, interpreter)?;
    }
    Ok(archive.content(name).unwrap_or_default().to_vec())
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
}
