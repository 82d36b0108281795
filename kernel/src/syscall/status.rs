//! Looking at files: the `stat` family, `statfs`, `access`.

use super::path::{caller, check_flags, description, entry_at, read_path, walk, walk_at};
use super::Errno;
use crate::memory::user;
use crate::files::{Access, Caller, Entry, FileSystem, Inode, Status, Timestamp};
use crate::process;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;
use zerocopy::{Immutable, IntoBytes};

const CURRENT: u64 = abi::AT_FDCWD as u64;
const BLOCK_SIZE: u32 = 4096;

/// `struct stat` of x86-64.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    owner: u32,
    group: u32,
    padding: u32,
    represented: u64,
    size: u64,
    block_size: u64,
    blocks: u64,
    accessed: [u64; 2],
    modified: [u64; 2],
    changed: [u64; 2],
    unused: [u64; 3],
}

fn words(time: Timestamp) -> [u64; 2] {
    [time.seconds as u64, u64::from(time.nanoseconds)]
}

/// A device number as `stat` packs it.
fn packed((major, minor): (u32, u32)) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

fn store(inode: &Inode, address: u64) -> Result<usize, Errno> {
    let status = inode.status();
    let attributes = &status.attributes;
    let stat = Stat {
        device: status.device,
        inode: status.number,
        links: u64::from(attributes.links),
        mode: status.mode,
        owner: attributes.owner,
        group: attributes.group,
        padding: 0,
        represented: packed(status.represented),
        size: status.size,
        block_size: u64::from(BLOCK_SIZE),
        blocks: status.blocks,
        accessed: words(attributes.accessed),
        modified: words(attributes.modified),
        changed: words(attributes.changed),
        unused: [0; 3],
    };
    user::write(address, &stat)?;
    Ok(0)
}

pub(crate) fn stat(&[path, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    store(entry_at(CURRENT, path, 0)?.inode(), address)
}

pub(crate) fn lstat(&[path, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    store(entry_at(CURRENT, path, abi::AT_SYMLINK_NOFOLLOW)?.inode(), address)
}

pub(crate) fn fstat(&[descriptor, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    store(description(descriptor)?.inode(), address)
}

pub(crate) fn newfstatat(&[descriptor, path, address, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    const KNOWN: u32 = abi::AT_SYMLINK_NOFOLLOW | abi::AT_NO_AUTOMOUNT | abi::AT_EMPTY_PATH;
    check_flags(flags as u32, KNOWN)?;
    store(entry_at(descriptor, path, flags as u32)?.inode(), address)
}

/// A time in `struct statx`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct StatxTime {
    seconds: i64,
    nanoseconds: u32,
    reserved: u32,
}

impl From<Timestamp> for StatxTime {
    fn from(time: Timestamp) -> Self {
        Self { seconds: time.seconds, nanoseconds: time.nanoseconds, reserved: 0 }
    }
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Statx {
    mask: u32,
    block_size: u32,
    attributes: u64,
    links: u32,
    owner: u32,
    group: u32,
    mode: u16,
    padding: u16,
    inode: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    accessed: StatxTime,
    created: StatxTime,
    changed: StatxTime,
    modified: StatxTime,
    represented: [u32; 2],
    device: [u32; 2],
    unused: [u64; 14],
}

fn extended(status: &Status) -> Statx {
    let attributes = &status.attributes;
    Statx {
        mask: abi::STATX_BASIC_STATS | abi::STATX_BTIME,
        block_size: BLOCK_SIZE,
        attributes: 0,
        links: attributes.links,
        owner: attributes.owner,
        group: attributes.group,
        mode: status.mode as u16,
        padding: 0,
        inode: status.number,
        size: status.size,
        blocks: status.blocks,
        attributes_mask: 0,
        accessed: attributes.accessed.into(),
        created: attributes.created.into(),
        changed: attributes.changed.into(),
        modified: attributes.modified.into(),
        represented: [status.represented.0, status.represented.1],
        device: [(status.device >> 8) as u32, status.device as u32 & 0xff],
        unused: [0; 14],
    }
}

pub(crate) fn statx(&[descriptor, path, flags, mask, address, _]: &[u64; 6]) -> Result<usize, Errno> {
    const SYNC: u32 = abi::AT_STATX_FORCE_SYNC | abi::AT_STATX_DONT_SYNC;
    const KNOWN: u32 = abi::AT_SYMLINK_NOFOLLOW | abi::AT_NO_AUTOMOUNT | abi::AT_EMPTY_PATH | SYNC;
    let flags = flags as u32;
    if mask as u32 & abi::STATX__RESERVED != 0 || flags & SYNC == SYNC {
        return Err(Errno::EINVAL);
    }
    check_flags(flags, KNOWN)?;
    let entry = entry_at(descriptor, path, flags)?;
    user::write(address, &extended(&entry.inode().status()))?;
    Ok(0)
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Statfs {
    magic: u64,
    block_size: u64,
    blocks: u64,
    free: u64,
    available: u64,
    files: u64,
    free_files: u64,
    identity: u64,
    name_length: u64,
    fragment_size: u64,
    flags: u64,
    spare: [u64; 4],
}

fn store_filesystem(filesystem: &FileSystem, address: u64) -> Result<usize, Errno> {
    let memory = crate::memory::usage();
    let (blocks, free) = if filesystem.holds_data() { (memory.total_pages, memory.free_pages) } else { (0, 0) };
    let statfs = Statfs {
        magic: u64::from(filesystem.magic),
        block_size: u64::from(BLOCK_SIZE),
        blocks,
        free,
        available: free,
        files: blocks,
        free_files: free,
        identity: filesystem.device,
        name_length: 255,
        fragment_size: u64::from(BLOCK_SIZE),
        flags: 0x20,
        spare: [0; 4],
    };
    user::write(address, &statfs)?;
    Ok(0)
}

pub(crate) fn statfs(&[path, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let entry = walk()?.find(&read_path(path)?)?;
    store_filesystem(entry.inode().filesystem(), address)
}

pub(crate) fn fstatfs(&[descriptor, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    store_filesystem(description(descriptor)?.inode().filesystem(), address)
}

/// The caller with its real ids, as whom `access` asks.
fn real_caller() -> Caller {
    let credentials = process::current().process().credentials();
    Caller { user: credentials.user.real, group: credentials.group.real, groups: credentials.groups }
}

fn check_access(descriptor: u64, path: u64, mode: u64, flags: u32) -> Result<usize, Errno> {
    const KNOWN: u32 = abi::AT_EACCESS | abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH;
    if mode as u32 & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    check_flags(flags, KNOWN)?;
    let who = if flags & abi::AT_EACCESS != 0 { caller() } else { real_caller() };
    let entry = accessed_entry(descriptor, path, flags, &who)?;
    if mode as u32 != 0 {
        entry.inode().check(&who, Access(mode as u32))?;
    }
    Ok(0)
}

/// As `entry_at`, walking as `who`.
fn accessed_entry(descriptor: u64, address: u64, flags: u32, who: &Caller) -> Result<Arc<Entry>, Errno> {
    let path = read_path(address)?;
    if path.is_empty() {
        return entry_at(descriptor, address, flags);
    }
    // Checks the descriptor and finds the start; the walk itself is the real user's.
    let follow = flags & abi::AT_SYMLINK_NOFOLLOW == 0;
    walk_at(descriptor, &path)?.with_caller(who.clone()).follow_last(follow).find(&path)
}

pub(crate) fn access(&[path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    check_access(CURRENT, path, mode, 0)
}

pub(crate) fn faccessat(&[descriptor, path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    check_access(descriptor, path, mode, 0)
}

pub(crate) fn faccessat2(&[descriptor, path, mode, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    check_access(descriptor, path, mode, flags as u32)
}
