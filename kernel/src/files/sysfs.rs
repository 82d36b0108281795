//! `/sys`: the few files of it that C libraries and language runtimes read.

use super::filesystem::SYS;
use super::populate::{directory, generated};
use super::Entry;
use crate::syscall::Errno;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

/// Puts everything below `root`, the root of the file system.
pub(crate) fn populate(root: &Arc<Entry>) -> Result<(), Errno> {
    let cpus = directory(root, "devices/system/cpu", &SYS)?;
    for name in ["online", "possible", "present"] {
        generated(&cpus, name, &SYS, || cpu_range().into_bytes())?;
    }
    generated(&cpus, "offline", &SYS, || b"\n".to_vec())?;
    for cpu in 0..crate::cpu::count() {
        directory(&cpus, &format!("cpu{cpu}"), &SYS)?;
    }
    let clock = directory(root, "devices/system/clocksource/clocksource0", &SYS)?;
    generated(&clock, "current_clocksource", &SYS, || b"tsc\n".to_vec())?;
    let huge = directory(root, "kernel/mm/transparent_hugepage", &SYS)?;
    generated(&huge, "enabled", &SYS, || b"always madvise [never]\n".to_vec())?;
    generated(&huge, "defrag", &SYS, || b"always defer defer+madvise madvise [never]\n".to_vec())?;
    generated(&huge, "hpage_pmd_size", &SYS, || b"2097152\n".to_vec())?;
    Ok(())
}

/// All CPUs, as a list of ranges.
fn cpu_range() -> String {
    match crate::cpu::count() {
        1 => String::from("0\n"),
        count => format!("0-{}\n", count - 1),
    }
}
