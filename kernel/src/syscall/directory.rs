//! Directories: reading them, changing the names in them, and standing in them.

use super::path::{
    caller, check_flags, context, description, entry_at, place_at, read_path, usable_description, walk, walk_at,
};
use super::Errno;
use crate::memory::user;
use crate::files::tree::{self, Taken};
use crate::files::{Access, Caller, Content, Device, Directory, Entry, FileContent, Listed, Pipe};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use linux_raw_sys::general as abi;

const CURRENT: u64 = abi::AT_FDCWD as u64;
/// Names that are fetched from a directory at once.
const BATCH: usize = 64;

/// Fills user memory with the names behind the description's position. `record` lays one out.
fn list(
    descriptor: u64,
    address: u64,
    size: u64,
    record: fn(&Listed) -> Vec<u8>,
) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    let directory = description.inode().directory()?;
    let size = size as u32 as usize;
    let mut filled = 0;
    let mut fault = None;
    description.seek(|mut position| {
        'batches: loop {
            let names = directory.list(description.entry(), position, BATCH);
            let last = names.len() < BATCH;
            for listed in &names {
                let bytes = record(listed);
                if filled + bytes.len() > size {
                    if filled == 0 {
                        fault = Some(Errno::EINVAL);
                    }
                    break 'batches;
                }
                if let Err(error) = user::write_bytes(address + filled as u64, &bytes) {
                    fault = (filled == 0).then_some(error);
                    break 'batches;
                }
                filled += bytes.len();
                position = listed.position;
            }
            if last {
                break;
            }
        }
        Ok(position)
    })?;
    match fault {
        Some(error) => Err(error),
        None => {
            description.inode().touch_accessed();
            Ok(filled)
        }
    }
}

/// The type of a file as directory records have it.
fn type_byte(listed: &Listed) -> u8 {
    (listed.inode.content().type_bits() >> 12) as u8
}

/// Common start of both record layouts: inode, next position, length of the record.
fn record_start(listed: &Listed, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(listed.inode.number().to_ne_bytes());
    bytes.extend(listed.position.to_ne_bytes());
    bytes.extend((length as u16).to_ne_bytes());
    bytes
}

pub(crate) fn getdents64(&[descriptor, address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    list(descriptor, address, size, |listed| {
        let length = (19 + listed.name.len() + 1).next_multiple_of(8);
        let mut bytes = record_start(listed, length);
        bytes.push(type_byte(listed));
        bytes.extend(&listed.name);
        bytes.resize(length, 0);
        bytes
    })
}

pub(crate) fn getdents(&[descriptor, address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    list(descriptor, address, size, |listed| {
        let length = (18 + listed.name.len() + 2).next_multiple_of(8);
        let mut bytes = record_start(listed, length);
        bytes.extend(&listed.name);
        bytes.resize(length, 0);
        bytes[length - 1] = type_byte(listed);
        bytes
    })
}

/// The permissions of a new file: `mode` without what the mask takes away.
fn masked(mode: u64) -> Result<u32, Errno> {
    Ok(mode as u32 & 0o7777 & !context()?.umask())
}

fn make_directory(descriptor: u64, path: u64, mode: u64) -> Result<usize, Errno> {
    let place = place_at(descriptor, path)?;
    let content = Content::Directory(Directory::new());
    tree::create(&place, content, masked(mode)? & 0o1777, &caller())?;
    Ok(0)
}

pub(crate) fn mkdir(&[path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    make_directory(CURRENT, path, mode)
}

pub(crate) fn mkdirat(&[descriptor, path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    make_directory(descriptor, path, mode)
}

fn make_node(descriptor: u64, path: u64, mode: u64, device: u64) -> Result<usize, Errno> {
    let (major, minor) = ((device >> 8 & 0xfff) as u32, (device & 0xff | device >> 12 & 0xfff00) as u32);
    let who = caller();
    let type_bits = mode as u32 & abi::S_IFMT;
    let content = match type_bits {
        0 | abi::S_IFREG => Content::Regular(FileContent::empty()),
        abi::S_IFIFO => Content::Fifo(Pipe::new()),
        abi::S_IFSOCK => Content::Socket(Weak::new()),
        abi::S_IFCHR | abi::S_IFBLK if who.user != 0 => return Err(Errno::EPERM),
        abi::S_IFCHR | abi::S_IFBLK => {
            Content::Device(Device::of_numbers(type_bits == abi::S_IFBLK, major, minor))
        }
        abi::S_IFDIR => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    };
    let place = place_at(descriptor, path)?;
    tree::create(&place, content, masked(mode)?, &who)?;
    Ok(0)
}

pub(crate) fn mknod(&[path, mode, device, ..]: &[u64; 6]) -> Result<usize, Errno> {
    make_node(CURRENT, path, mode, device)
}

pub(crate) fn mknodat(&[descriptor, path, mode, device, ..]: &[u64; 6]) -> Result<usize, Errno> {
    make_node(descriptor, path, mode, device)
}

pub(crate) fn rmdir(&[path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    tree::remove_directory(&place_at(CURRENT, path)?, &caller())?;
    Ok(0)
}

pub(crate) fn unlink(&[path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    tree::unlink(&place_at(CURRENT, path)?, &caller())?;
    Ok(0)
}

pub(crate) fn unlinkat(&[descriptor, path, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    check_flags(flags as u32, abi::AT_REMOVEDIR)?;
    let place = place_at(descriptor, path)?;
    if flags as u32 & abi::AT_REMOVEDIR != 0 {
        tree::remove_directory(&place, &caller())?;
    } else {
        tree::unlink(&place, &caller())?;
    }
    Ok(0)
}

pub(crate) fn rename(&[from, to, ..]: &[u64; 6]) -> Result<usize, Errno> {
    renameat2(&[CURRENT, from, CURRENT, to, 0, 0])
}

pub(crate) fn renameat(&[from_descriptor, from, to_descriptor, to, ..]: &[u64; 6]) -> Result<usize, Errno> {
    renameat2(&[from_descriptor, from, to_descriptor, to, 0, 0])
}

pub(crate) fn renameat2(&[from_descriptor, from, to_descriptor, to, flags, _]: &[u64; 6]) -> Result<usize, Errno> {
    let taken = match flags as u32 {
        0 => Taken::Replace,
        abi::RENAME_NOREPLACE => Taken::Refuse,
        abi::RENAME_EXCHANGE => Taken::Exchange,
        _ => return Err(Errno::EINVAL),
    };
    let from = place_at(from_descriptor, from)?;
    let to = place_at(to_descriptor, to)?;
    tree::rename(&from, &to, taken, &caller())?;
    Ok(0)
}

pub(crate) fn link(&[from, to, ..]: &[u64; 6]) -> Result<usize, Errno> {
    linkat(&[CURRENT, from, CURRENT, to, 0, 0])
}

pub(crate) fn linkat(&[from_descriptor, from, to_descriptor, to, flags, _]: &[u64; 6]) -> Result<usize, Errno> {
    let flags = flags as u32;
    check_flags(flags, abi::AT_SYMLINK_FOLLOW | abi::AT_EMPTY_PATH)?;
    let nofollow = if flags & abi::AT_SYMLINK_FOLLOW != 0 { 0 } else { abi::AT_SYMLINK_NOFOLLOW };
    let target = entry_at(from_descriptor, from, flags & abi::AT_EMPTY_PATH | nofollow)?;
    tree::link(&target, &place_at(to_descriptor, to)?, &caller())?;
    Ok(0)
}

pub(crate) fn symlink(&[target, path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    symlinkat(&[target, CURRENT, path, 0, 0, 0])
}

pub(crate) fn symlinkat(&[target, descriptor, path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let target = read_path(target)?;
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    let place = place_at(descriptor, path)?;
    tree::create(&place, Content::Symlink(target.into()), 0o777, &caller())?;
    Ok(0)
}

pub(crate) fn readlink(&[path, address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    readlinkat(&[CURRENT, path, address, size, 0, 0])
}

pub(crate) fn readlinkat(&[descriptor, path, address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if size as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    let path = read_path(path)?;
    let entry = if path.is_empty() {
        // Only a descriptor that stands for a link itself has an empty path.
        let entry = description(descriptor).map_err(|_| Errno::ENOENT)?.entry().clone();
        if entry.inode().is_symlink() { entry } else { return Err(Errno::ENOENT) }
    } else {
        walk_at(descriptor, &path)?.follow_last(false).find(&path)?
    };
    let text = match entry.inode().content() {
        Content::Symlink(target) => target.to_vec(),
        Content::Jump(jump) => jump.text()?,
        Content::GeneratedLink(text) => text(),
        _ => return Err(Errno::EINVAL),
    };
    let count = text.len().min(size as u32 as usize);
    user::write_bytes(address, &text[..count])?;
    Ok(count)
}

/// EACCES or ENOTDIR unless `caller` may stand in `entry`.
fn check_stand(entry: &Arc<Entry>, caller: &Caller) -> Result<(), Errno> {
    entry.inode().directory()?;
    entry.inode().check(caller, Access::SEARCH)
}

pub(crate) fn chdir(&[path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let entry = walk()?.find(&read_path(path)?)?;
    check_stand(&entry, &caller())?;
    context()?.set_working(entry);
    Ok(0)
}

pub(crate) fn fchdir(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let entry = description(descriptor)?.entry().clone();
    check_stand(&entry, &caller())?;
    context()?.set_working(entry);
    Ok(0)
}

pub(crate) fn chroot(&[path, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let entry = walk()?.find(&read_path(path)?)?;
    let who = caller();
    check_stand(&entry, &who)?;
    if who.user != 0 {
        return Err(Errno::EPERM);
    }
    context()?.set_root(entry);
    Ok(0)
}

pub(crate) fn getcwd(&[address, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let context = context()?;
    let working = context.working();
    if working.is_removed() {
        return Err(Errno::ENOENT);
    }
    let mut path = working.path_from(&context.root()).unwrap_or_else(|| {
        let mut path = b"(unreachable)".to_vec();
        path.extend(working.path_from(crate::files::root()).unwrap_or_default());
        path
    });
    path.push(0);
    if path.len() as u64 > size {
        return Err(Errno::ERANGE);
    }
    user::write_bytes(address, &path)?;
    Ok(path.len())
}
