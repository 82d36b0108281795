//! Inodes: what a file is, apart from its names.
//!
//! The kind of a file is decided once, by its content. Names are entries (`entry`), openings are
//! descriptions (`description`). An inode lives as long as anybody refers to it, so a file that was removed
//! while open stays usable.

use super::filesystem::FileSystem;
use super::{Caller, Device, Directory, Entry, FileContent, Pipe};
use crate::network::Endpoint;
use crate::syscall::Errno;
use crate::sync::SpinLock;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use linux_raw_sys::general as abi;

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

impl Timestamp {
    pub(crate) fn now() -> Self {
        let nanoseconds = crate::time::now() + crate::time::realtime_offset();
        Self { seconds: (nanoseconds / 1_000_000_000) as i64, nanoseconds: (nanoseconds % 1_000_000_000) as u32 }
    }
}

/// What can be changed about a file besides its content.
#[derive(Clone)]
pub(crate) struct Attributes {
    /// The low twelve bits of `st_mode`.
    pub(crate) permissions: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// Number of names.
    pub(crate) links: u32,
    pub(crate) accessed: Timestamp,
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
    pub(crate) created: Timestamp,
}

/// Text that the kernel makes when somebody reads.
pub(crate) trait Generated: Send + Sync {
    fn text(&self) -> Result<Vec<u8>, Errno>;

    /// Takes what a program wrote. Most such files cannot be written.
    fn store(&self, _text: &[u8]) -> Result<(), Errno> {
        Err(Errno::EACCES)
    }
}

/// A link that leads to a file directly and not by a path, as `/proc/self/exe` does.
pub(crate) trait Jump: Send + Sync {
    fn target(&self) -> Result<Arc<Entry>, Errno>;
    /// What `readlink` shows.
    fn text(&self) -> Result<Vec<u8>, Errno>;
}

#[allow(clippy::large_enum_variant, reason = "reads, writes and faults go to regular files; a box would be one more step for each")]
pub(crate) enum Content {
    Regular(FileContent),
    Directory(Directory),
    Symlink(Box<[u8]>),
    Jump(Box<dyn Jump>),
    /// A link whose text depends on who reads it, as that of `/proc/self` does.
    GeneratedLink(fn() -> Vec<u8>),
    Fifo(Arc<Pipe>),
    Device(Device),
    Generated(Box<dyn Generated>),
    /// A name in the tree for a socket, and who is called so, if anybody still is.
    Socket(Weak<Endpoint>),
    /// Files that have no type of their own: event counters, epoll instances.
    Anonymous,
}

impl Content {
    /// The type bits of `st_mode`.
    pub(crate) fn type_bits(&self) -> u32 {
        match self {
            Self::Regular(_) | Self::Generated(_) => abi::S_IFREG,
            Self::Directory(_) => abi::S_IFDIR,
            Self::Symlink(_) | Self::Jump(_) | Self::GeneratedLink(_) => abi::S_IFLNK,
            Self::Fifo(_) => abi::S_IFIFO,
            Self::Device(device) => device.type_bits(),
            Self::Socket(_) => abi::S_IFSOCK,
            Self::Anonymous => 0,
        }
    }
}

pub(crate) struct Inode {
    filesystem: &'static FileSystem,
    number: u64,
    content: Content,
    attributes: SpinLock<Attributes>,
}

/// What `stat` shows, before it is put into one of the three layouts of the ABI.
pub(crate) struct Status {
    pub(crate) device: u64,
    pub(crate) number: u64,
    /// Type and permission bits.
    pub(crate) mode: u32,
    pub(crate) attributes: Attributes,
    /// Number of the device that a device file stands for.
    pub(crate) represented: (u32, u32),
    pub(crate) size: u64,
    /// Storage in use, in units of 512 bytes.
    pub(crate) blocks: u64,
}

/// What somebody wants to do with a file; the bits are those of `access(2)`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access(pub u32);

impl Access {
    pub(crate) const EXECUTE: Self = Self(1);
    pub(crate) const WRITE: Self = Self(2);
    pub(crate) const READ: Self = Self(4);
    /// To look up names in a directory.
    pub(crate) const SEARCH: Self = Self(1);
    /// To change the names in a directory.
    pub(crate) const CHANGE: Self = Self(3);
}

impl Inode {
    pub(crate) fn new(filesystem: &'static FileSystem, content: Content, permissions: u32, caller: &Caller) -> Arc<Self> {
        Self::with_number(filesystem, filesystem.new_number(), content, permissions, caller)
    }

    /// For file systems that compute their inode numbers.
    pub(crate) fn with_number(
        filesystem: &'static FileSystem,
        number: u64,
        content: Content,
        permissions: u32,
        caller: &Caller,
    ) -> Arc<Self> {
        let now = Timestamp::now();
        let attributes = Attributes {
            permissions: permissions & 0o7777,
            owner: caller.user,
            group: caller.group,
            links: if matches!(content, Content::Directory(_)) { 2 } else { 1 },
            accessed: now,
            modified: now,
            changed: now,
            created: now,
        };
        Arc::new(Self { filesystem, number, content, attributes: SpinLock::new(attributes) })
    }

    pub(crate) fn filesystem(&self) -> &'static FileSystem {
        self.filesystem
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn attributes(&self) -> Attributes {
        self.attributes.lock().clone()
    }

    /// Changes attributes and stamps the time of change.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Attributes) -> R) -> R {
        let now = Timestamp::now();
        let mut attributes = self.attributes.lock();
        attributes.changed = now;
        change(&mut attributes)
    }

    /// The content was read.
    pub(crate) fn touch_accessed(&self) {
        let now = Timestamp::now();
        self.attributes.lock().accessed = now;
    }

    /// The content was changed.
    pub(crate) fn touch_modified(&self) {
        let now = Timestamp::now();
        self.change(|attributes| attributes.modified = now);
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory(_))
    }

    pub(crate) fn is_symlink(&self) -> bool {
        matches!(self.content, Content::Symlink(_) | Content::Jump(_) | Content::GeneratedLink(_))
    }

    pub(crate) fn directory(&self) -> Result<&Directory, Errno> {
        match &self.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The content of a regular file: EISDIR for a directory, EINVAL for everything else.
    pub(crate) fn regular(&self) -> Result<&FileContent, Errno> {
        match &self.content {
            Content::Regular(content) => Ok(content),
            Content::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.content {
            Content::Regular(content) => content.size(),
            Content::Symlink(target) => target.len() as u64,
            Content::Directory(directory) => directory.size(),
            _ => 0,
        }
    }

    /// What SEEK_END counts from: the size, of a disk too, whose `st_size` is 0.
    pub(crate) fn seek_end(&self) -> u64 {
        match &self.content {
            Content::Device(device) => device.size(),
            _ => self.size(),
        }
    }

    pub(crate) fn status(&self) -> Status {
        let attributes = self.attributes();
        Status {
            device: self.filesystem.device,
            number: self.number,
            mode: self.content.type_bits() | attributes.permissions,
            attributes,
            represented: match &self.content {
                Content::Device(device) => device.numbers(),
                _ => (0, 0),
            },
            size: self.size(),
            blocks: match &self.content {
                Content::Regular(content) => content.blocks(),
                _ => 0,
            },
        }
    }

    /// Checks the permission bits: EACCES if `caller` may not. User 0 may read and write everything, and
    /// execute what anybody may execute.
    pub(crate) fn check(&self, caller: &Caller, wanted: Access) -> Result<(), Errno> {
        let attributes = self.attributes.lock();
        if caller.user == 0 {
            let executable = self.is_directory() || attributes.permissions & 0o111 != 0;
            let refused = wanted.0 & Access::EXECUTE.0 != 0 && !executable;
            return if refused { Err(Errno::EACCES) } else { Ok(()) };
        }
        let shift = if caller.user == attributes.owner {
            6
        } else if caller.is_member(attributes.group) {
            3
        } else {
            0
        };
        let granted = attributes.permissions >> shift & 7;
        if wanted.0 & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// EPERM unless `caller` owns the file.
    pub(crate) fn check_owner(&self, caller: &Caller) -> Result<(), Errno> {
        if caller.user == 0 || caller.user == self.attributes.lock().owner { Ok(()) } else { Err(Errno::EPERM) }
    }
}
