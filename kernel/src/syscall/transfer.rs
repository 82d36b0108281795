//! Reading, writing and seeking.
//!
//! Linux checks in this order: the descriptor, the stretches of memory, the offset, the kind of file. A transfer moves
//! at most `MOST_BYTES`; more is cut off silently.

use super::path::{description, usable_description};
use super::Errno;
use crate::memory::user;
use crate::files::{Content, Description, MOST_SIZE, Positions, UserMemory};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The most that one call moves: the largest multiple of a page below 2^31.
const MOST_BYTES: usize = 0x7fff_f000;
/// Most stretches in a vector.
const MOST_STRETCHES: usize = 1024;
/// RWF_* flags that change nothing here: nothing is ever written to a disk, and nothing but waiting is not immediate.
const RWF_HINTS: u32 = 1 | 2 | 4 | 8;
const RWF_APPEND: u32 = 0x10;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Stretch {
    address: u64,
    length: u64,
}

/// One stretch of user memory as a transfer's other end.
fn memory(address: u64, length: u64) -> Result<UserMemory, Errno> {
    user::check_range(address, length)?;
    if length > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    Ok(UserMemory::new(address, (length as usize).min(MOST_BYTES)))
}

/// The stretches of an `iovec` array.
fn vector(address: u64, count: u64) -> Result<UserMemory, Errno> {
    let list = stretches(address, count)?;
    Ok(UserMemory::of_stretches(list.into_iter().map(|(address, length)| (address, length as usize)).collect()))
}

/// Addresses and lengths of the stretches of an `iovec` array that are not empty, up to the most that one call moves.
pub(super) fn stretches(address: u64, count: u64) -> Result<Vec<(u64, u64)>, Errno> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MOST_STRETCHES {
        return Err(Errno::EINVAL);
    }
    let mut stretches = vec![Stretch { address: 0, length: 0 }; count];
    user::read_bytes(address, stretches.as_mut_slice().as_mut_bytes())?;
    if stretches.iter().any(|stretch| stretch.length > i64::MAX as u64) {
        return Err(Errno::EINVAL);
    }
    let mut room = MOST_BYTES as u64;
    let mut list = Vec::with_capacity(count);
    for stretch in stretches {
        user::check_range(stretch.address, stretch.length)?;
        let length = stretch.length.min(room);
        room -= length;
        if length > 0 {
            list.push((stretch.address, length));
        }
    }
    Ok(list)
}

pub(crate) fn read(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    if !description.is_readable() {
        return Err(Errno::EBADF);
    }
    description.read(&mut memory(address, length)?)
}

pub(crate) fn write(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    if !description.is_writable() {
        return Err(Errno::EBADF);
    }
    description.write(&mut memory(address, length)?)
}

pub(crate) fn readv(&[descriptor, address, count, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    if !description.is_readable() {
        return Err(Errno::EBADF);
    }
    description.read(&mut vector(address, count)?)
}

pub(crate) fn writev(&[descriptor, address, count, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    if !description.is_writable() {
        return Err(Errno::EBADF);
    }
    description.write(&mut vector(address, count)?)
}

/// An offset argument: EINVAL if it is negative.
fn offset(argument: u64) -> Result<u64, Errno> {
    if argument > MOST_SIZE { Err(Errno::EINVAL) } else { Ok(argument) }
}

pub(crate) fn pread64(&[descriptor, address, length, at, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let at = offset(at)?;
    description(descriptor)?.read_at(at, &mut memory(address, length)?)
}

pub(crate) fn pwrite64(&[descriptor, address, length, at, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let at = offset(at)?;
    description(descriptor)?.write_at(at, &mut memory(address, length)?)
}

pub(crate) fn preadv(&[descriptor, address, count, at, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let at = offset(at)?;
    description(descriptor)?.read_at(at, &mut vector(address, count)?)
}

pub(crate) fn pwritev(&[descriptor, address, count, at, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let at = offset(at)?;
    description(descriptor)?.write_at(at, &mut vector(address, count)?)
}

/// The flags of `preadv2` and `pwritev2`: EOPNOTSUPP for those that this kernel does not know.
fn check_rwf(flags: u64, known: u32) -> Result<(), Errno> {
    if flags as u32 & !known == 0 { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

pub(crate) fn preadv2(&[descriptor, address, count, at, _, flags]: &[u64; 6]) -> Result<usize, Errno> {
    if at == u64::MAX {
        check_rwf(flags, RWF_HINTS)?;
        return readv(&[descriptor, address, count, 0, 0, 0]);
    }
    let at = offset(at)?;
    let description = description(descriptor)?;
    let mut memory = vector(address, count)?;
    check_rwf(flags, RWF_HINTS)?;
    description.read_at(at, &mut memory)
}

pub(crate) fn pwritev2(&[descriptor, address, count, at, _, flags]: &[u64; 6]) -> Result<usize, Errno> {
    check_rwf(flags, RWF_HINTS | RWF_APPEND)?;
    let append = flags as u32 & RWF_APPEND != 0;
    let description = description(descriptor)?;
    let mut memory = vector(address, count)?;
    match (at, append) {
        (u64::MAX, false) => description.write(&mut memory),
        (u64::MAX, true) => description.append(&mut memory, true),
        (_, true) => description.append(&mut memory, false),
        (_, false) => description.write_at(offset(at)?, &mut memory),
    }
}

pub(crate) fn lseek(&[descriptor, distance, origin, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = usable_description(descriptor)?;
    let distance = distance as i64;
    let size = description.inode().seek_end();
    let is_directory = description.inode().is_directory();
    let moved = |from: u64| {
        let to = (from as i64).checked_add(distance).ok_or(Errno::EOVERFLOW)?;
        u64::try_from(to).map_err(|_| Errno::EINVAL)
    };
    let position = description.seek(|position| match origin as u32 {
        abi::SEEK_SET => moved(0),
        abi::SEEK_CUR => moved(position),
        abi::SEEK_END if is_directory => Err(Errno::EINVAL),
        abi::SEEK_END => moved(size),
        abi::SEEK_DATA | abi::SEEK_HOLE if distance < 0 => Err(Errno::ENXIO),
        abi::SEEK_DATA => description.inode().regular()?.next_data(distance as u64),
        abi::SEEK_HOLE => description.inode().regular()?.next_hole(distance as u64),
        _ => Err(Errno::EINVAL),
    })?;
    Ok(position as usize)
}

/// Where a transfer between two files reads or writes: at an offset in user memory, or at the position.
struct Side {
    description: Arc<Description>,
    /// The offset and where it is kept.
    explicit: Option<(u64, u64)>,
}

impl Side {
    fn new(description: Arc<Description>, pointer: u64) -> Result<Self, Errno> {
        let explicit = if pointer == 0 {
            None
        } else {
            if description.file().positions() == Positions::None {
                return Err(Errno::ESPIPE);
            }
            Some((offset(user::read(pointer)?)?, pointer))
        };
        Ok(Self { description, explicit })
    }

    fn read(&mut self, mut buffer: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.explicit {
            Some((offset, _)) => {
                let count = self.description.read_at(*offset, &mut buffer)?;
                *offset += count as u64;
                Ok(count)
            }
            None => self.description.read(&mut buffer),
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.explicit {
            Some((offset, _)) => {
                let count = self.description.write_at(*offset, &mut bytes)?;
                *offset += count as u64;
                Ok(count)
            }
            None => self.description.write(&mut bytes),
        }
    }

    /// Takes back `count` bytes that were read and not used.
    fn step_back(&mut self, count: usize) -> Result<(), Errno> {
        match &mut self.explicit {
            Some((offset, _)) => *offset -= count as u64,
            None => {
                self.description.seek(|position| Ok(position.saturating_sub(count as u64)))?;
            }
        }
        Ok(())
    }

    /// Stores the offset where the program keeps it.
    fn finish(&self) -> Result<(), Errno> {
        match self.explicit {
            Some((offset, pointer)) => user::write(pointer, &offset),
            None => Ok(()),
        }
    }
}

/// Moves up to `length` bytes from one file to another through the kernel.
fn carry(from: &mut Side, to: &mut Side, length: usize) -> Result<usize, Errno> {
    let mut buffer = vec![0; length.min(64 * 1024)];
    let mut done = 0;
    while done < length {
        let wanted = buffer.len().min(length - done);
        let step = from.read(&mut buffer[..wanted]).and_then(|read| {
            let written = if read == 0 { Ok(0) } else { to.write(&buffer[..read]) };
            if *written.as_ref().unwrap_or(&0) < read {
                from.step_back(read - written.as_ref().unwrap_or(&0))?;
            }
            Ok((read, written?))
        });
        match step {
            Ok((read, written)) => {
                done += written;
                if read == 0 || written < read {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        crate::task::yield_if_needed();
        if crate::files::transfer::is_given_up() {
            break;
        }
    }
    from.finish()?;
    to.finish()?;
    Ok(done)
}

pub(crate) fn sendfile(&[to, from, pointer, count, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let from = description(from)?;
    if !from.is_readable() {
        return Err(Errno::EBADF);
    }
    let mut from = Side::new(from, pointer)?;
    let to = description(to)?;
    if !to.is_writable() {
        return Err(Errno::EBADF);
    }
    if from.description.file().positions() == Positions::None || to.flags() & abi::O_APPEND != 0 {
        return Err(Errno::EINVAL);
    }
    if from.description.inode().is_directory() {
        return Err(Errno::EINVAL);
    }
    let mut to = Side::new(to, 0)?;
    carry(&mut from, &mut to, (count as usize).min(MOST_BYTES))
}

pub(crate) fn copy_file_range(
    &[from, from_pointer, to, to_pointer, count, flags]: &[u64; 6],
) -> Result<usize, Errno> {
    let from = description(from)?;
    let to = description(to)?;
    let mut from = Side::new(from, from_pointer)?;
    let mut to = Side::new(to, to_pointer)?;
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let is_regular = |side: &Side| match side.description.inode().content() {
        Content::Directory(_) => Err(Errno::EISDIR),
        Content::Regular(_) => Ok(()),
        _ => Err(Errno::EINVAL),
    };
    is_regular(&from)?;
    is_regular(&to)?;
    let appends = to.description.flags() & abi::O_APPEND != 0;
    if !from.description.is_readable() || !to.description.is_writable() || appends {
        return Err(Errno::EBADF);
    }
    let same = Arc::ptr_eq(from.description.inode(), to.description.inode());
    if same && overlaps(&from, &to, count)? {
        return Err(Errno::EINVAL);
    }
    carry(&mut from, &mut to, (count as usize).min(MOST_BYTES))
}

/// Whether the bytes that are read and those that are written, both in one file, overlap.
fn overlaps(from: &Side, to: &Side, count: u64) -> Result<bool, Errno> {
    let start = |side: &Side| match side.explicit {
        Some((offset, _)) => Ok(offset),
        None => side.description.seek(Ok),
    };
    Ok(start(from)?.abs_diff(start(to)?) < count)
}
