//! What calls on files have in common: the caller's table and place in the tree, paths, descriptors.

use super::Errno;
use crate::memory::user;
use crate::files::walk::{MOST_PATH, Place, Walk};
use crate::files::{Caller, Context, Description, Entry, FileTable, Reserved, check_executable};
use crate::process::{self, limits::Resource};
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;

/// The caller's descriptors.
pub(crate) fn table() -> Result<Arc<FileTable>, Errno> {
    process::current().files().ok_or(Errno::EBADF)
}

/// Where the caller stands in the tree.
pub(crate) fn context() -> Result<Arc<Context>, Errno> {
    process::current().context().ok_or(Errno::ENOENT)
}

/// As whom the caller looks at files.
pub(crate) fn caller() -> Caller {
    process::caller_of(process::current().process())
}

/// One past the largest descriptor that the caller may have.
pub(crate) fn descriptor_limit() -> usize {
    let limit = process::current().process().limit(Resource::NOFILE).soft;
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// What a descriptor stands for: EBADF if nothing.
pub(crate) fn description(argument: u64) -> Result<Arc<Description>, Errno> {
    table()?.get(argument as i32)
}

/// As `description`, but EBADF also for one opened with O_PATH.
pub(crate) fn usable_description(argument: u64) -> Result<Arc<Description>, Errno> {
    let description = description(argument)?;
    if description.is_path_only() { Err(Errno::EBADF) } else { Ok(description) }
}

/// Puts a new description under the lowest free number.
pub(crate) fn install(description: Arc<Description>, close_on_exec: bool) -> Result<usize, Errno> {
    let descriptor = table()?.insert(description, close_on_exec, 0, descriptor_limit())?;
    Ok(descriptor as usize)
}

/// Keeps the lowest free number for a description that is yet to come.
pub(super) fn reserve(close_on_exec: bool) -> Result<Reserved, Errno> {
    table()?.reserve(close_on_exec, descriptor_limit())
}

/// Reads the path at `address`: EFAULT, or ENAMETOOLONG if it does not end in time.
pub(crate) fn read_path(address: u64) -> Result<Vec<u8>, Errno> {
    user::read_string(address, MOST_PATH, Errno::ENAMETOOLONG)
}

/// A walk that starts at the working directory.
pub(crate) fn walk() -> Result<Walk, Errno> {
    Ok(Walk::new(&*context()?, caller()))
}

/// A walk for `path` as the `*at` calls want it: relative paths start at the directory that `descriptor` stands
/// for, or at the working directory for AT_FDCWD.
pub(crate) fn walk_at(descriptor: u64, path: &[u8]) -> Result<Walk, Errno> {
    let walk = walk()?;
    if path.starts_with(b"/") || path.is_empty() || descriptor as i32 == abi::AT_FDCWD {
        return Ok(walk);
    }
    let start = description(descriptor)?;
    start.inode().directory()?;
    Ok(walk.from(start.entry().clone()))
}

/// Where a name is to be made or removed: the place of the last name of the path at `address`.
pub(crate) fn place_at(descriptor: u64, address: u64) -> Result<Place, Errno> {
    let path = read_path(address)?;
    walk_at(descriptor, &path)?.for_change().place(&path)
}

/// What the path at `address` names. With AT_EMPTY_PATH in `flags` an empty path means `descriptor` itself; with
/// AT_SYMLINK_NOFOLLOW a link in the last place is meant and not its target.
pub(crate) fn entry_at(descriptor: u64, address: u64, flags: u32) -> Result<Arc<Entry>, Errno> {
    let path = read_path(address)?;
    if path.is_empty() && flags & abi::AT_EMPTY_PATH != 0 {
        return if descriptor as i32 == abi::AT_FDCWD {
            Ok(context()?.working())
        } else {
            Ok(description(descriptor)?.entry().clone())
        };
    }
    walk_at(descriptor, &path)?.follow_last(flags & abi::AT_SYMLINK_NOFOLLOW == 0).find(&path)
}

/// EINVAL if `flags` has bits outside `known`.
pub(crate) fn check_flags(flags: u32, known: u32) -> Result<(), Errno> {
    if flags & !known == 0 { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The program that `execveat` names: EACCES if it may not be executed, ELOOP for a link that is not to be followed.
pub(crate) fn find_executable(descriptor: i32, path: &[u8], flags: u32) -> Result<Arc<Entry>, Errno> {
    check_flags(flags, abi::AT_EMPTY_PATH | abi::AT_SYMLINK_NOFOLLOW)?;
    let entry = if path.is_empty() && flags & abi::AT_EMPTY_PATH != 0 {
        description(descriptor as u64)?.entry().clone()
    } else {
        let follow = flags & abi::AT_SYMLINK_NOFOLLOW == 0;
        walk_at(descriptor as u64, path)?.follow_last(follow).find(path)?
    };
    if entry.inode().is_symlink() {
        return Err(Errno::ELOOP);
    }
    check_executable(&entry, &caller())?;
    Ok(entry)
}
