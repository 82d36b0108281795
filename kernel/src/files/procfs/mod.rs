//! `/proc`: the kernel's state as text.
//!
//! Files of the machine are entries like any others, their text is made when they are read. The directories
//! of processes are not in any list: they are made when somebody looks a number up.

mod coherence;
mod cpu;
mod memory;
mod process;
mod process_memory;
mod process_status;
mod settings;
mod system;

use super::filesystem::PROC;
use super::populate::{file, generated};
use super::{Content, Entry};
use crate::syscall::Errno;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(crate) use process::{process_of_directory, processes};

/// A name and how its text is made.
type File = (&'static str, fn() -> Vec<u8>);

/// Puts the files of the machine below `root`, the root of the file system.
pub(crate) fn populate(root: &Arc<Entry>) -> Result<(), Errno> {
    let files: [File; 16] = [
        ("ceasefire", coherence::ledger),
        ("interrupts", coherence::interrupts),
        ("vmstat", memory::vmstat),
        ("meminfo", memory::meminfo),
        ("cpuinfo", cpu::cpuinfo),
        ("stat", cpu::stat),
        ("uptime", cpu::uptime),
        ("loadavg", cpu::loadavg),
        ("cmdline", system::cmdline),
        ("version", system::version),
        ("filesystems", system::filesystems),
        ("mounts", system::mounts),
        ("partitions", system::partitions),
        ("devices", system::devices),
        ("swaps", system::swaps),
        ("modules", Vec::new),
    ];
    for (name, text) in files {
        generated(root, name, &PROC, text)?;
    }
    let links: [File; 2] = [("self", own_process), ("thread-self", own_thread)];
    for (name, text) in links {
        file(root, name, &PROC, Content::GeneratedLink(text), 0o777)?;
    }
    settings::populate(root)
}

/// The target of `/proc/self`.
fn own_process() -> Vec<u8> {
    format!("{}", crate::process::current().process().id()).into_bytes()
}

/// The target of `/proc/thread-self`.
fn own_thread() -> Vec<u8> {
    let thread = crate::process::current();
    format!("{}/task/{}", thread.process().id(), thread.id()).into_bytes()
}
