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
use super::populate::{self, file, generated};
use super::{Content, Entry};
use crate::memory::swap;
use crate::network::{Family, internet_table, unix_table};
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
        ("swaps", swap::table),
        ("modules", Vec::new),
    ];
    for (name, text) in files {
        generated(root, name, &PROC, text)?;
    }
    let links: [File; 2] = [("self", own_process), ("thread-self", own_thread)];
    for (name, text) in links {
        file(root, name, &PROC, Content::GeneratedLink(text), 0o777)?;
    }
    let shared = populate::directory(root, "sysvipc", &PROC)?;
    generated(&shared, "shm", &PROC, || crate::ipc::SEGMENTS.lock().text())?;
    let network = populate::directory(root, "net", &PROC)?;
    let tables: [File; 6] = [
        ("unix", unix_table),
        ("tcp", || internet_table(Family::Internet, true)),
        ("tcp6", || internet_table(Family::InternetSix, true)),
        ("udp", || internet_table(Family::Internet, false)),
        ("udp6", || internet_table(Family::InternetSix, false)),
        ("if_inet6", || b"00000000000000000000000000000001 01 80 10 80       lo\n".to_vec()),
    ];
    for (name, text) in tables {
        generated(&network, name, &PROC, text)?;
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
