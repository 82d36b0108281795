//! Opening files, and their size and storage.

use super::path::{
    caller, check_flags, context, description, entry_at, install, read_path, usable_description, walk_at,
};
use super::Errno;
use crate::memory::user;
use crate::files::filesystem::MEMORY_FILES;
use crate::files::{self, Access, Content, DiskFile, Inode, MOST_SIZE};
use alloc::vec::Vec;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, IntoBytes};

const CURRENT: u64 = abi::AT_FDCWD as u64;
/// All flags of `open` that mean something; older calls pass over others.
const OPEN_FLAGS: u32 = abi::O_ACCMODE
    | abi::O_CREAT
    | abi::O_EXCL
    | abi::O_NOCTTY
    | abi::O_TRUNC
    | abi::O_APPEND
    | abi::O_NONBLOCK
    | abi::O_SYNC
    | abi::FASYNC
    | abi::O_DIRECT
    | abi::O_LARGEFILE
    | abi::O_DIRECTORY
    | abi::O_NOFOLLOW
    | abi::O_NOATIME
    | abi::O_CLOEXEC
    | abi::O_PATH
    | abi::O_TMPFILE;

fn open_path(descriptor: u64, path: u64, flags: u32, mode: u32) -> Result<usize, Errno> {
    let mut flags = flags & OPEN_FLAGS | abi::O_LARGEFILE;
    if flags & abi::O_PATH != 0 {
        flags &= abi::O_PATH | abi::O_DIRECTORY | abi::O_NOFOLLOW | abi::O_CLOEXEC;
    }
    let path = read_path(path)?;
    let walk = walk_at(descriptor, &path)?;
    let permissions = mode & 0o7777 & !context()?.umask();
    let description = if flags & abi::O_TMPFILE == abi::O_TMPFILE {
        open_temporary(&walk.find(&path)?, flags, permissions)?
    } else {
        files::open(&walk, &path, flags, permissions)?
    };
    install(description, flags & abi::O_CLOEXEC != 0)
}

/// O_TMPFILE: a file without a name on the file system of the directory.
fn open_temporary(
    directory: &alloc::sync::Arc<files::Entry>,
    flags: u32,
    permissions: u32,
) -> Result<alloc::sync::Arc<files::Description>, Errno> {
    let who = caller();
    directory.inode().directory()?;
    if flags & abi::O_ACCMODE == abi::O_RDONLY {
        return Err(Errno::EINVAL);
    }
    directory.inode().check(&who, Access::CHANGE)?;
    let filesystem = directory.inode().filesystem();
    if !filesystem.holds_data() {
        return Err(Errno::EOPNOTSUPP);
    }
    let entry = files::unnamed_file(filesystem, b"/#temporary", false, &who);
    entry.inode().change(|attributes| attributes.permissions = permissions);
    files::open_entry(&entry, flags & !abi::O_TMPFILE, &who, true)
}

pub(crate) fn open(&[path, flags, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    open_path(CURRENT, path, flags as u32, mode as u32)
}

pub(crate) fn openat(&[descriptor, path, flags, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    open_path(descriptor, path, flags as u32, mode as u32)
}

pub(crate) fn creat(&[path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    open_path(CURRENT, path, abi::O_CREAT | abi::O_WRONLY | abi::O_TRUNC, mode as u32)
}

/// `struct open_how`.
#[derive(FromBytes, IntoBytes)]
#[repr(C)]
struct How {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// `openat2`, without the restrictions of the walk that it could ask for: those are EINVAL.
pub(crate) fn openat2(&[descriptor, path, address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    const SIZE: usize = size_of::<How>();
    if (size as usize) < SIZE {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let mut rest: Vec<u8> = alloc::vec![0; size as usize - SIZE];
    user::read_bytes(address + SIZE as u64, &mut rest)?;
    if rest.iter().any(|&byte| byte != 0) {
        return Err(Errno::E2BIG);
    }
    let how: How = user::read(address)?;
    let makes = how.flags as u32 & (abi::O_CREAT | abi::O_TMPFILE & !abi::O_DIRECTORY) != 0;
    if how.flags & !u64::from(OPEN_FLAGS) != 0 || how.resolve != 0 || how.mode & !0o7777 != 0 {
        return Err(Errno::EINVAL);
    }
    if how.mode != 0 && !makes {
        return Err(Errno::EINVAL);
    }
    open_path(descriptor, path, how.flags as u32, how.mode as u32)
}

/// Sets the size of a regular file.
fn set_size(inode: &Inode, size: u64) -> Result<usize, Errno> {
    inode.regular()?.set_size(size)?;
    inode.touch_modified();
    Ok(0)
}

pub(crate) fn truncate(&[path, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if size > MOST_SIZE {
        return Err(Errno::EINVAL);
    }
    let entry = entry_at(CURRENT, path, 0)?;
    entry.inode().regular()?;
    entry.inode().check(&caller(), Access::WRITE)?;
    entry.inode().regular()?.uses().check_idle()?;
    set_size(entry.inode(), size)
}

pub(crate) fn ftruncate(&[descriptor, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if size > MOST_SIZE {
        return Err(Errno::EINVAL);
    }
    let description = usable_description(descriptor)?;
    if !description.is_writable() || description.inode().is_directory() {
        return Err(Errno::EINVAL);
    }
    set_size(description.inode(), size)
}

pub(crate) fn fallocate(&[descriptor, mode, offset, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    if offset > MOST_SIZE || length > MOST_SIZE || length == 0 {
        return Err(Errno::EINVAL);
    }
    let mode = mode as u32;
    check_allocation_mode(mode)?;
    if !description.is_writable() {
        return Err(Errno::EBADF);
    }
    let content = match description.inode().content() {
        Content::Regular(content) => content,
        Content::Fifo(_) => return Err(Errno::ESPIPE),
        Content::Directory(_) => return Err(Errno::EISDIR),
        _ => return Err(Errno::ENODEV),
    };
    if offset + length > MOST_SIZE {
        return Err(Errno::EFBIG);
    }
    let grows = mode & abi::FALLOC_FL_KEEP_SIZE == 0;
    match mode & !abi::FALLOC_FL_KEEP_SIZE {
        0 => content.allocate(offset, length, grows)?,
        abi::FALLOC_FL_PUNCH_HOLE => content.punch(offset, length)?,
        abi::FALLOC_FL_ZERO_RANGE => {
            content.punch(offset, length)?;
            content.allocate(offset, length, grows)?;
        }
        _ => return Err(Errno::EOPNOTSUPP),
    }
    description.inode().touch_modified();
    Ok(0)
}

/// Which modes can be combined is told before what a file can.
fn check_allocation_mode(mode: u32) -> Result<(), Errno> {
    use abi::{
        FALLOC_FL_COLLAPSE_RANGE as COLLAPSE, FALLOC_FL_INSERT_RANGE as INSERT, FALLOC_FL_KEEP_SIZE as KEEP_SIZE,
        FALLOC_FL_PUNCH_HOLE as PUNCH, FALLOC_FL_UNSHARE_RANGE as UNSHARE, FALLOC_FL_ZERO_RANGE as ZERO,
    };
    let has = |flag| mode & flag != 0;
    let unknown = mode & !(COLLAPSE | INSERT | KEEP_SIZE | PUNCH | UNSHARE | ZERO) != 0;
    if unknown || (has(PUNCH) && has(ZERO)) || (has(PUNCH) && !has(KEEP_SIZE)) {
        return Err(Errno::EOPNOTSUPP);
    }
    let stands_alone = |flag: u32, beside: u32| !has(flag) || mode & !(flag | beside) == 0;
    if stands_alone(COLLAPSE, 0) && stands_alone(INSERT, 0) && stands_alone(UNSHARE, KEEP_SIZE) {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

/// `fsync` and `fdatasync`: what is not on a disk is where it will ever be.
pub(crate) fn fsync(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    if let Some(disk) = description.file_as::<DiskFile>() {
        return disk.synchronize();
    }
    match description.inode().content() {
        Content::Regular(_) | Content::Directory(_) | Content::Generated(_) => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

pub(crate) fn sync(_: &[u64; 6]) -> Result<usize, Errno> {
    files::synchronize_disks();
    Ok(0)
}

pub(crate) fn syncfs(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    usable_description(descriptor)?;
    Ok(0)
}

pub(crate) fn sync_file_range(&[descriptor, offset, length, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    check_flags(flags as u32, 7)?;
    if offset > MOST_SIZE || length > MOST_SIZE || offset + length > MOST_SIZE {
        return Err(Errno::EINVAL);
    }
    match usable_description(descriptor)?.inode().content() {
        Content::Regular(_) | Content::Directory(_) => Ok(0),
        _ => Err(Errno::ESPIPE),
    }
}

/// Advice about reading ahead, of which there is nothing to do: the file is in memory.
pub(crate) fn fadvise64(&[descriptor, _, length, advice, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    if matches!(description.inode().content(), Content::Fifo(_) | Content::Socket(_)) {
        return Err(Errno::ESPIPE);
    }
    if length > MOST_SIZE || advice > 5 { Err(Errno::EINVAL) } else { Ok(0) }
}

pub(crate) fn readahead(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    if !description.is_readable() {
        return Err(Errno::EBADF);
    }
    description.inode().regular().map_err(|_| Errno::EINVAL)?;
    Ok(0)
}

pub(crate) fn memfd_create(&[name, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    const LONGEST: usize = 250;
    const KNOWN: u32 = abi::MFD_CLOEXEC | abi::MFD_ALLOW_SEALING;
    check_flags(flags as u32, KNOWN)?;
    let name = user::read_string(name, LONGEST, Errno::EINVAL)?;
    let shown = [b"/memfd:", &*name].concat();
    let who = caller();
    let entry = files::unnamed_file(&MEMORY_FILES, &shown, flags as u32 & abi::MFD_ALLOW_SEALING != 0, &who);
    let description = files::open_entry(&entry, abi::O_RDWR | abi::O_LARGEFILE, &who, true)?;
    install(description, flags as u32 & abi::MFD_CLOEXEC != 0)
}
