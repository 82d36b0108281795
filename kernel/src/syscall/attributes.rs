//! Changing what is known about a file: permissions, owner, times, and the mask for new files.

use super::path::{caller, check_flags, context, description, entry_at, usable_description};
use super::Errno;
use crate::memory::user;
use crate::files::{Access, Inode, Timestamp};
use linux_raw_sys::general as abi;

const CURRENT: u64 = abi::AT_FDCWD as u64;

fn set_permissions(inode: &Inode, mode: u64) -> Result<usize, Errno> {
    let caller = caller();
    inode.check_owner(&caller)?;
    let mut permissions = mode as u32 & 0o7777;
    inode.change(|attributes| {
        if caller.user != 0 && !caller.is_member(attributes.group) {
            permissions &= !abi::S_ISGID;
        }
        attributes.permissions = permissions;
    });
    Ok(0)
}

pub(crate) fn chmod(&[path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_permissions(entry_at(CURRENT, path, 0)?.inode(), mode)
}

pub(crate) fn fchmod(&[descriptor, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_permissions(usable_description(descriptor)?.inode(), mode)
}

pub(crate) fn fchmodat(&[descriptor, path, mode, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_permissions(entry_at(descriptor, path, 0)?.inode(), mode)
}

/// Sets owner and group; all ones leaves either as it is.
fn set_owner(inode: &Inode, owner: u64, group: u64) -> Result<usize, Errno> {
    let caller = caller();
    let keep = |id: u64| id as u32 == u32::MAX;
    let (owner, group) = (if keep(owner) { None } else { Some(owner as u32) }, if keep(group) { None } else { Some(group as u32) });
    let former = inode.attributes();
    let owner_granted = owner.is_none_or(|owner| owner == former.owner && caller.user == former.owner);
    let group_granted =
        group.is_none_or(|group| caller.user == former.owner && (group == former.group || caller.is_member(group)));
    if caller.user != 0 && !(owner_granted && group_granted) {
        return Err(Errno::EPERM);
    }
    inode.change(|attributes| {
        attributes.owner = owner.unwrap_or(attributes.owner);
        attributes.group = group.unwrap_or(attributes.group);
        if !inode.is_directory() {
            // A program that runs as its owner must not come to run as somebody else.
            attributes.permissions &= !abi::S_ISUID;
            if attributes.permissions & abi::S_IXGRP != 0 {
                attributes.permissions &= !abi::S_ISGID;
            }
        }
    });
    Ok(0)
}

pub(crate) fn chown(&[path, owner, group, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_owner(entry_at(CURRENT, path, 0)?.inode(), owner, group)
}

pub(crate) fn lchown(&[path, owner, group, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_owner(entry_at(CURRENT, path, abi::AT_SYMLINK_NOFOLLOW)?.inode(), owner, group)
}

pub(crate) fn fchown(&[descriptor, owner, group, ..]: &[u64; 6]) -> Result<usize, Errno> {
    set_owner(usable_description(descriptor)?.inode(), owner, group)
}

pub(crate) fn fchownat(&[descriptor, path, owner, group, flags, _]: &[u64; 6]) -> Result<usize, Errno> {
    check_flags(flags as u32, abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH)?;
    set_owner(entry_at(descriptor, path, flags as u32)?.inode(), owner, group)
}

/// A time to be set: some time, the present, or not at all.
#[derive(Clone, Copy)]
enum NewTime {
    At(Timestamp),
    Now,
    Keep,
}

/// Reads the two `timespec`s of `utimensat`; none means now for both.
fn new_times(address: u64) -> Result<[NewTime; 2], Errno> {
    if address == 0 {
        return Ok([NewTime::Now; 2]);
    }
    let [accessed_seconds, accessed, modified_seconds, modified]: [i64; 4] = user::read(address)?;
    let time = |seconds, nanoseconds: i64| match nanoseconds {
        _ if nanoseconds == i64::from(abi::UTIME_NOW) => Ok(NewTime::Now),
        _ if nanoseconds == i64::from(abi::UTIME_OMIT) => Ok(NewTime::Keep),
        0..1_000_000_000 => Ok(NewTime::At(Timestamp { seconds, nanoseconds: nanoseconds as u32 })),
        _ => Err(Errno::EINVAL),
    };
    Ok([time(accessed_seconds, accessed)?, time(modified_seconds, modified)?])
}

fn set_times(inode: &Inode, [accessed, modified]: [NewTime; 2]) -> Result<usize, Errno> {
    let caller = caller();
    match [accessed, modified] {
        [NewTime::Keep, NewTime::Keep] => return Ok(0),
        // Whoever may write the file may set its times to the present.
        [NewTime::Now, NewTime::Now] => inode.check_owner(&caller).or_else(|_| inode.check(&caller, Access::WRITE))?,
        _ => inode.check_owner(&caller)?,
    }
    let now = Timestamp::now();
    let value = |time, former| match time {
        NewTime::At(time) => time,
        NewTime::Now => now,
        NewTime::Keep => former,
    };
    inode.change(|attributes| {
        attributes.accessed = value(accessed, attributes.accessed);
        attributes.modified = value(modified, attributes.modified);
    });
    Ok(0)
}

pub(crate) fn utimensat(&[descriptor, path, times, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let times = new_times(times)?;
    if path == 0 && descriptor as i32 != abi::AT_FDCWD {
        check_flags(flags as u32, 0)?;
        return set_times(description(descriptor)?.inode(), times);
    }
    check_flags(flags as u32, abi::AT_SYMLINK_NOFOLLOW | abi::AT_EMPTY_PATH)?;
    set_times(entry_at(descriptor, path, flags as u32)?.inode(), times)
}

/// Two `timeval`s, as the older calls have them.
fn coarse_times(address: u64) -> Result<[NewTime; 2], Errno> {
    if address == 0 {
        return Ok([NewTime::Now; 2]);
    }
    let [accessed_seconds, accessed, modified_seconds, modified]: [i64; 4] = user::read(address)?;
    let time = |seconds, microseconds: i64| match microseconds {
        0..1_000_000 => Ok(NewTime::At(Timestamp { seconds, nanoseconds: microseconds as u32 * 1000 })),
        _ => Err(Errno::EINVAL),
    };
    Ok([time(accessed_seconds, accessed)?, time(modified_seconds, modified)?])
}

pub(crate) fn utimes(&[path, times, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let times = coarse_times(times)?;
    set_times(entry_at(CURRENT, path, 0)?.inode(), times)
}

pub(crate) fn futimesat(&[descriptor, path, times, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let times = coarse_times(times)?;
    if path == 0 {
        return set_times(description(descriptor)?.inode(), times);
    }
    set_times(entry_at(descriptor, path, 0)?.inode(), times)
}

pub(crate) fn utime(&[path, times, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let times = if times == 0 {
        [NewTime::Now; 2]
    } else {
        let seconds: [i64; 2] = user::read(times)?;
        seconds.map(|seconds| NewTime::At(Timestamp { seconds, nanoseconds: 0 }))
    };
    set_times(entry_at(CURRENT, path, 0)?.inode(), times)
}

pub(crate) fn umask(&[mask, ..]: &[u64; 6]) -> Result<usize, Errno> {
    Ok(context()?.set_umask(mask as u32) as usize)
}

/// All calls on extended attributes: no file system here has any.
pub(crate) fn extended_attributes(_: &[u64; 6]) -> Result<usize, Errno> {
    Err(Errno::EOPNOTSUPP)
}
