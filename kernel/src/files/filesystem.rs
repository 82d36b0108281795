//! The file systems and where each hangs in the tree.
//!
//! There are no bind mounts and nothing is ever unmounted, so mounting is simple: the root entry of the
//! mounted file system *replaces* the entry that it covers, with that entry's name and parent. A path walk
//! then needs no mount table at all. What remains of mounting is that every inode knows its file system,
//! that the table below answers `/proc/mounts`, and that a link or rename across two file systems is EXDEV.

use crate::sync::SpinLock;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// One file system. All of them exist from the start, as statics.
pub(crate) struct FileSystem {
    /// As in `/proc/filesystems`.
    pub(crate) name: &'static str,
    /// `st_dev`; the major number is 0, as for all file systems without a disk.
    pub(crate) device: u64,
    /// `f_type` of `statfs`.
    pub(crate) magic: u32,
    /// Whether programs may create, remove and rename in it.
    pub(crate) changeable: bool,
    next_number: AtomicU64,
}

impl FileSystem {
    const fn new(name: &'static str, device: u64, magic: u32, changeable: bool) -> Self {
        Self { name, device, magic, changeable, next_number: AtomicU64::new(1) }
    }

    /// An inode number that this file system has not given out before.
    pub(crate) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether files of it hold data, as opposed to showing the kernel's state.
    pub(crate) fn holds_data(&self) -> bool {
        self.magic == TMPFS_MAGIC
    }
}

const TMPFS_MAGIC: u32 = 0x0102_1994;

pub(crate) static ROOT: FileSystem = FileSystem::new("rootfs", 1, TMPFS_MAGIC, true);
pub(crate) static PROC: FileSystem = FileSystem::new("proc", 2, 0x9fa0, false);
pub(crate) static SYS: FileSystem = FileSystem::new("sysfs", 3, 0x6265_6572, false);
pub(crate) static DEVICES: FileSystem = FileSystem::new("devtmpfs", 4, TMPFS_MAGIC, true);
pub(crate) static SHARED_MEMORY: FileSystem = FileSystem::new("tmpfs", 5, TMPFS_MAGIC, true);
pub(crate) static TEMPORARY: FileSystem = FileSystem::new("tmpfs", 6, TMPFS_MAGIC, true);
pub(crate) static PIPES: FileSystem = FileSystem::new("pipefs", 7, 0x5049_5045, false);
pub(crate) static SOCKETS: FileSystem = FileSystem::new("sockfs", 8, 0x534f_434b, false);
pub(crate) static ANONYMOUS: FileSystem = FileSystem::new("anon_inodefs", 9, 0x0904_1934, false);
/// Files of `memfd_create`; never in the tree.
pub(crate) static MEMORY_FILES: FileSystem = FileSystem::new("tmpfs", 10, TMPFS_MAGIC, true);

pub(crate) static MESSAGE_QUEUES: FileSystem = FileSystem::new("mqueue", 12, 0x1980_0202, false);

/// A row of `/proc/mounts`.
#[derive(Clone, Copy)]
pub(crate) struct Mount {
    pub(crate) path: &'static str,
    pub(crate) filesystem: &'static FileSystem,
}

static MOUNTS: SpinLock<Vec<Mount>> = SpinLock::new(Vec::new());

/// Notes that `filesystem` has been put at `path`.
pub(super) fn note_mount(path: &'static str, filesystem: &'static FileSystem) {
    MOUNTS.lock().push(Mount { path, filesystem });
}

/// What is mounted, in the order of mounting.
pub(crate) fn mounts() -> Vec<Mount> {
    MOUNTS.lock().clone()
}
