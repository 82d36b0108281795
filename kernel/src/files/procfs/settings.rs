//! `/proc/sys`: what are settings on Linux and are mostly facts here, which cannot be changed through these files.

use super::super::filesystem::PROC;
use super::super::inode::Generated;
use super::super::populate::{directory, file, generated};
use super::super::{Content, Entry, QUEUE_BOUNDS};
use crate::ipc;
use crate::network;
use crate::process::ID_LIMIT;
use crate::syscall::{Errno, system_name};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Directory, file, text.
type Setting = (&'static str, &'static str, fn() -> Vec<u8>);

const SETTINGS: [Setting; 27] = [
    ("sys/kernel", "ostype", || line(system_name().system)),
    ("sys/kernel", "osrelease", || line(system_name().release)),
    ("sys/kernel", "version", || line(system_name().version)),
    ("sys/kernel", "hostname", || line(system_name().host)),
    ("sys/kernel", "pid_max", || line(ID_LIMIT)),
    ("sys/kernel", "threads-max", || line(ID_LIMIT)),
    ("sys/kernel", "ngroups_max", || line(65536)),
    ("sys/kernel", "core_pattern", || line("core")),
    ("sys/kernel", "core_uses_pid", || line(0)),
    ("sys/kernel", "randomize_va_space", || line(0)),
    ("sys/kernel/random", "boot_id", || line(identifier())),
    ("sys/kernel/random", "uuid", || line(identifier())),
    ("sys/vm", "overcommit_memory", || line(0)),
    ("sys/vm", "overcommit_ratio", || line(50)),
    ("sys/vm", "max_map_count", || line(65530)),
    ("sys/vm", "mmap_min_addr", || line(65536)),
    ("sys/vm", "swappiness", || line(0)),
    ("sys/vm", "unprivileged_userfaultfd", || line(0)),
    ("sys/net/core", "somaxconn", || line(network::MOST_BACKLOG)),
    ("sys/net/core", "rmem_max", || line(network::Options::MOST_BUFFER)),
    ("sys/net/core", "wmem_max", || line(network::Options::MOST_BUFFER)),
    ("sys/net/ipv4", "ip_local_port_range", || {
        line(format_args!("{}\t{}", network::EPHEMERAL.start(), network::EPHEMERAL.end()))
    }),
    ("sys/net/ipv4", "tcp_syncookies", || line(0)),
    ("sys/net/unix", "max_dgram_qlen", || line(network::MOST_DATAGRAMS - 1)),
    ("sys/fs", "file-max", || line(i64::MAX)),
    ("sys/fs", "nr_open", || line(1 << 20)),
    ("sys/fs", "pipe-max-size", || line(super::super::pipe::MOST_CAPACITY)),
];

/// Those that a program may change.
const BOUNDS: [(&str, &str, &AtomicU64, u64); 8] = [
    ("sys/kernel", "shmmax", &ipc::BOUNDS.size, u64::MAX),
    ("sys/kernel", "shmall", &ipc::BOUNDS.pages, u64::MAX),
    ("sys/kernel", "shmmni", &ipc::BOUNDS.segments, ipc::PLACES as u64),
    ("sys/fs/mqueue", "queues_max", &QUEUE_BOUNDS.queues, i32::MAX as u64),
    ("sys/fs/mqueue", "msg_max", &QUEUE_BOUNDS.messages, 65536),
    ("sys/fs/mqueue", "msgsize_max", &QUEUE_BOUNDS.bytes, 16 << 20),
    ("sys/fs/mqueue", "msg_default", &QUEUE_BOUNDS.usual_messages, 65536),
    ("sys/fs/mqueue", "msgsize_default", &QUEUE_BOUNDS.usual_bytes, 16 << 20),
];

/// A number that stands in a file, and the largest that it may be.
struct Bound {
    value: &'static AtomicU64,
    most: u64,
}

impl Generated for Bound {
    fn text(&self) -> Result<Vec<u8>, Errno> {
        Ok(line(self.value.load(Ordering::Relaxed)))
    }

    fn store(&self, text: &[u8]) -> Result<(), Errno> {
        let number = str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        let number = number.filter(|&number: &u64| number <= self.most).ok_or(Errno::EINVAL)?;
        self.value.store(number, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) fn populate(root: &Arc<Entry>) -> Result<(), Errno> {
    for (path, name, value, most) in BOUNDS {
        let content = Content::Generated(Box::new(Bound { value, most }));
        file(&directory(root, path, &PROC)?, name, &PROC, content, 0o644)?;
    }
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
