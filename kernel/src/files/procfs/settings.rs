//! `/proc/sys`: what are settings on Linux and are facts here, which cannot be changed through these files.

use super::super::filesystem::PROC;
use super::super::populate::{directory, generated};
use super::super::Entry;
use crate::process::ID_LIMIT;
use crate::syscall::{Errno, system_name};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Directory, file, text.
type Setting = (&'static str, &'static str, fn() -> Vec<u8>);

const SETTINGS: [Setting; 22] = [
    ("sys/kernel", "ostype", || line(system_name().system)),
    ("sys/kernel", "osrelease", || line(system_name().release)),
    ("sys/kernel", "version", || line(system_name().version)),
    ("sys/kernel", "hostname", || line(system_name().host)),
    ("sys/kernel", "pid_max", || line(ID_LIMIT)),
    ("sys/kernel", "threads-max", || line(ID_LIMIT)),
    ("sys/kernel", "ngroups_max", || line(65536)),
    ("sys/kernel", "randomize_va_space", || line(0)),
    ("sys/kernel", "shmmax", || line(0)),
    ("sys/kernel", "shmall", || line(0)),
    ("sys/kernel", "shmmni", || line(0)),
    ("sys/kernel/random", "boot_id", || line(identifier())),
    ("sys/kernel/random", "uuid", || line(identifier())),
    ("sys/vm", "overcommit_memory", || line(0)),
    ("sys/vm", "overcommit_ratio", || line(50)),
    ("sys/vm", "max_map_count", || line(65530)),
    ("sys/vm", "mmap_min_addr", || line(65536)),
    ("sys/vm", "swappiness", || line(0)),
    ("sys/vm", "unprivileged_userfaultfd", || line(0)),
    ("sys/fs", "file-max", || line(i64::MAX)),
    ("sys/fs", "nr_open", || line(1 << 20)),
    ("sys/fs", "pipe-max-size", || line(super::super::pipe::MOST_CAPACITY)),
];

pub(crate) fn populate(root: &Arc<Entry>) -> Result<(), Errno> {
    for (path, name, text) in SETTINGS {
        generated(&directory(root, path, &PROC)?, name, &PROC, text)?;
    }
    Ok(())
}

fn line(value: impl core::fmt::Display) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// A random identifier in the form of RFC 9562, version 4.
fn identifier() -> alloc::string::String {
    let mut bytes = [0; 16];
    crate::process::random::fill(&mut bytes);
    let number = u128::from_be_bytes(bytes) & !(0xf << 76 | 3 << 62) | 4 << 76 | 2 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        number >> 96,
        number >> 80 & 0xffff,
        number >> 64 & 0xffff,
        number >> 48 & 0xffff,
        number & 0xffff_ffff_ffff
    )
}
