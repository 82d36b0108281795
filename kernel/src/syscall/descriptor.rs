//! Descriptors: closing and copying them, their flags, their locks, and `ioctl`.

use super::path::{description, descriptor_limit, install, table, usable_description};
use super::Errno;
use crate::memory::user;
use crate::files::lock::{self, Lock, Owner};
use crate::files::{self, Content, Description, FileContent, MOST_SIZE, Seals};
use crate::process::{self, CloneFlags};
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl;
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub(crate) fn close(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    files::close(table()?.remove(descriptor as i32)?);
    Ok(0)
}

pub(crate) fn close_range(&[first, last, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    /// Take a table of its own first.
    const UNSHARE: u32 = 2;
    /// Mark instead of closing.
    const MARK: u32 = 4;
    let (first, last) = (first as u32, last as u32);
    if flags as u32 & !(UNSHARE | MARK) != 0 || first > last {
        return Err(Errno::EINVAL);
    }
    if flags as u32 & UNSHARE != 0 {
        process::unshare(CloneFlags::FILES)?;
    }
    let table = table()?;
    if flags as u32 & MARK != 0 {
        table.mark_range(first as usize, last as usize);
    } else {
        table.remove_range(first as usize, last as usize).into_iter().for_each(files::close);
    }
    Ok(0)
}

pub(crate) fn dup(&[descriptor, ..]: &[u64; 6]) -> Result<usize, Errno> {
    install(description(descriptor)?, false)
}

pub(crate) fn dup2(&[from, to, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if from as u32 == to as u32 {
        description(from)?;
        return Ok(to as u32 as usize);
    }
    duplicate_to(from, to, false)
}

pub(crate) fn dup3(&[from, to, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if flags as u32 & !abi::O_CLOEXEC != 0 || from as u32 == to as u32 {
        return Err(Errno::EINVAL);
    }
    duplicate_to(from, to, flags as u32 & abi::O_CLOEXEC != 0)
}

fn duplicate_to(from: u64, to: u64, close_on_exec: bool) -> Result<usize, Errno> {
    let table = table()?;
    let target = to as u32 as usize;
    if target >= descriptor_limit() {
        return Err(Errno::EBADF);
    }
    let source = table.get(from as i32)?;
    if let Some(former) = table.replace(to as i32, source, close_on_exec)? {
        files::close(former);
    }
    Ok(target)
}

pub(crate) fn fcntl(&[descriptor, command, argument, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    let command = command as u32;
    let path_only_allowed =
        matches!(command, abi::F_DUPFD | abi::F_DUPFD_CLOEXEC | abi::F_GETFD | abi::F_SETFD | abi::F_GETFL);
    if description.is_path_only() && !path_only_allowed {
        return Err(Errno::EBADF);
    }
    match command {
        abi::F_DUPFD | abi::F_DUPFD_CLOEXEC => {
            let least = argument as u32 as usize;
            if least >= descriptor_limit() {
                return Err(Errno::EINVAL);
            }
            let close_on_exec = command == abi::F_DUPFD_CLOEXEC;
            let copy = table()?.insert(description, close_on_exec, least, descriptor_limit())?;
            Ok(copy as usize)
        }
        abi::F_GETFD => Ok(usize::from(table()?.close_on_exec_flag(descriptor as i32)?)),
        abi::F_SETFD => {
            let flag = argument as u32 & abi::FD_CLOEXEC != 0;
            table()?.set_close_on_exec_flag(descriptor as i32, flag)?;
            Ok(0)
        }
        abi::F_GETFL => Ok(description.flags() as usize),
        abi::F_SETFL => {
            description.set_flags(argument as u32);
            Ok(0)
        }
        abi::F_SETPIPE_SZ | abi::F_GETPIPE_SZ => pipe_size(&description, command, argument),
        abi::F_GETLK | abi::F_SETLK | abi::F_SETLKW => {
            let owner = Owner::Process(process::current().process().id());
            record_lock(&description, command, argument, owner)
        }
        abi::F_OFD_GETLK | abi::F_OFD_SETLK | abi::F_OFD_SETLKW => {
            let owner = Owner::description(&description);
            record_lock(&description, command, argument, owner)
        }
        // Nobody is told about input by a signal, and there are no leases.
        abi::F_GETOWN | abi::F_SETOWN | abi::F_GETSIG | abi::F_SETSIG => Ok(0),
        abi::F_GETLEASE => Ok(abi::F_UNLCK as usize),
        abi::F_GET_SEALS => Ok(sealable(&description)?.seals().bits() as usize),
        abi::F_ADD_SEALS => add_seals(&description, argument as u32),
        _ => Err(Errno::EINVAL),
    }
}

/// The content of a file that could have seals: one of those that are made of memory.
fn sealable(description: &Description) -> Result<&FileContent, Errno> {
    let inode = description.inode();
    let content = inode.regular().map_err(|_| Errno::EINVAL)?;
    if inode.filesystem().holds_data() { Ok(content) } else { Err(Errno::EINVAL) }
}

fn add_seals(description: &Description, seals: u32) -> Result<usize, Errno> {
    let content = sealable(description)?;
    if !description.is_writable() {
        return Err(Errno::EPERM);
    }
    content.seal(Seals::from_bits(seals).ok_or(Errno::EINVAL)?)?;
    Ok(0)
}

fn pipe_size(description: &Description, command: u32, argument: u64) -> Result<usize, Errno> {
    let Content::Fifo(pipe) = description.inode().content() else { return Err(Errno::EBADF) };
    if command == abi::F_GETPIPE_SZ { Ok(pipe.capacity()) } else { pipe.set_capacity(argument as u32 as usize) }
}

/// `struct flock`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Record {
    kind: i16,
    origin: i16,
    padding: u32,
    start: i64,
    length: i64,
    process: i32,
    tail: u32,
}

/// The bytes that a record names.
fn range(description: &Description, record: &Record) -> Result<(u64, u64), Errno> {
    let base = match record.origin as u32 {
        abi::SEEK_SET => 0,
        abi::SEEK_CUR => description.seek(Ok).unwrap_or(0) as i64,
        abi::SEEK_END => description.inode().size() as i64,
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(record.start).ok_or(Errno::EOVERFLOW)?;
    // A negative length names the bytes before the start.
    let (start, length) = if record.length < 0 {
        (start.checked_add(record.length).ok_or(Errno::EINVAL)?, -record.length)
    } else {
        (start, record.length)
    };
    let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    let end = match length {
        0 => u64::MAX,
        _ => start.checked_add(length as u64 - 1).filter(|&end| end <= MOST_SIZE).ok_or(Errno::EOVERFLOW)?,
    };
    Ok((start, end))
}

fn record_lock(description: &Description, command: u32, address: u64, owner: Owner) -> Result<usize, Errno> {
    let mut record: Record = user::read(address)?;
    let of_description = matches!(owner, Owner::Description(_));
    if of_description && record.process != 0 {
        return Err(Errno::EINVAL);
    }
    let (start, end) = range(description, &record)?;
    let exclusive = record.kind as u32 == abi::F_WRLCK;
    let wanted = Lock { owner, exclusive, start, end };
    let inode = description.inode();
    let gets = matches!(command, abi::F_GETLK | abi::F_OFD_GETLK);
    match record.kind as u32 {
        abi::F_UNLCK if !gets => {
            lock::release(inode, &wanted);
            return Ok(0);
        }
        abi::F_RDLCK | abi::F_WRLCK => {}
        _ => return Err(Errno::EINVAL),
    }
    if gets {
        match lock::conflict(inode, &wanted) {
            None => record.kind = abi::F_UNLCK as i16,
            Some(held) => {
                record.kind = if held.exclusive { abi::F_WRLCK } else { abi::F_RDLCK } as i16;
                record.origin = abi::SEEK_SET as i16;
                record.start = held.start as i64;
                record.length = if held.end == u64::MAX { 0 } else { (held.end - held.start + 1) as i64 };
                record.process = match held.owner {
                    Owner::Process(id) => id as i32,
                    _ => -1,
                };
            }
        }
        user::write(address, &record)?;
        return Ok(0);
    }
    let allowed = if exclusive { description.is_writable() } else { description.is_readable() };
    if !allowed {
        return Err(Errno::EBADF);
    }
    lock::acquire(inode, wanted, matches!(command, abi::F_SETLKW | abi::F_OFD_SETLKW))?;
    Ok(0)
}

pub(crate) fn flock(&[descriptor, operation, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    let operation = operation as u32;
    let wait = operation & abi::LOCK_NB == 0;
    let owner = Owner::whole_file(&description);
    let whole = |exclusive| Lock { owner, exclusive, start: 0, end: u64::MAX };
    match operation & !abi::LOCK_NB {
        abi::LOCK_SH => lock::acquire(description.inode(), whole(false), wait)?,
        abi::LOCK_EX => lock::acquire(description.inode(), whole(true), wait)?,
        abi::LOCK_UN => lock::release(description.inode(), &whole(false)),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

pub(crate) fn ioctl(&[descriptor, request, argument, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    match request as u32 {
        ioctl::FIOCLEX => table()?.set_close_on_exec_flag(descriptor as i32, true)?,
        ioctl::FIONCLEX => table()?.set_close_on_exec_flag(descriptor as i32, false)?,
        ioctl::FIONBIO => {
            let on: i32 = user::read(argument)?;
            let flag = if on != 0 { abi::O_NONBLOCK } else { 0 };
            description.set_flags(description.flags() & !abi::O_NONBLOCK | flag);
        }
        // Nobody is told by a signal (F_SETOWN), but programs set it and go on without.
        ioctl::FIOASYNC if matches!(description.inode().content(), Content::Socket(_) | Content::Fifo(_)) => {
            let on: i32 = user::read(argument)?;
            let flag = if on != 0 { abi::FASYNC } else { 0 };
            description.set_flags(description.flags() & !abi::FASYNC | flag);
        }
        ioctl::FIONREAD if matches!(description.inode().content(), Content::Regular(_)) => {
            let position = description.seek(Ok)?;
            let rest = description.inode().size().saturating_sub(position);
            user::write(argument, &i32::try_from(rest).unwrap_or(i32::MAX))?;
        }
        request => return description.file().control(request, argument),
    }
    Ok(0)
}
