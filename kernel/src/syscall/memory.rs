//! Memory: `mmap` and its family.
//!
//! What these calls say about memory alone is checked by `memory` (its `calls`), so that the simulated machine runs the same
//! lines; here is what has to do with files and with the program's own memory. Arguments are checked in Linux's order, because a program
//! that passes two mistakes at once sees the first.

use alloc::sync::Arc;
use alloc::vec;

use ::memory::{Advice, PAGE_SIZE, PageRange, RangeError, Rights, USER_END, calls, is_aligned, round_down};
use linux_raw_sys::general as abi;

use super::{Arguments, Errno, path};
use crate::files::{Positions, Seals};
use crate::memory::{AddressSpace, Backing, MapRequest, current_space, user, zero_backing};

/// Flags that `MAP_SHARED_VALIDATE` accepts.
const VALIDATED: u32 = abi::MAP_SHARED_VALIDATE
    | abi::MAP_FIXED
    | abi::MAP_ANONYMOUS
    | abi::MAP_GROWSDOWN
    | abi::MAP_DENYWRITE
    | abi::MAP_EXECUTABLE
    | abi::MAP_LOCKED
    | abi::MAP_NORESERVE
    | abi::MAP_POPULATE
    | abi::MAP_NONBLOCK
    | abi::MAP_STACK
    | abi::MAP_FIXED_NOREPLACE
    | abi::MAP_32BIT;
const MAP_TYPE: u32 = 0xf;

fn space() -> Result<Arc<AddressSpace>, Errno> {
    current_space().ok_or(Errno::ENOMEM)
}

/// `mmap(address, length, protection, flags, descriptor, offset)`.
pub(super) fn mmap(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, flags, descriptor, offset] = *arguments;
    if !is_aligned(offset) {
        return Err(Errno::EINVAL);
    }
    if flags as u32 & abi::MAP_ANONYMOUS != 0 {
        if flags as u32 & abi::MAP_HUGETLB != 0 {
            return Err(Errno::EINVAL);
        }
        let start = space()?.mmap_anonymous([address, length, protection, flags, offset], zero_backing)?;
        return Ok(start as usize);
    }
    let file = path::usable_description(descriptor)?;
    let flags = flags as u32;
    if flags & abi::MAP_HUGETLB != 0 {
        return Err(Errno::EINVAL);
    }
    let length = calls::mapped_length(length, offset)?;
    let rights = calls::rights(protection);
    // No page of a file lies beyond the largest offset that there is. (A length that fits nowhere is told otherwise, below.)
    let has_end = i64::try_from(offset.saturating_add(length)).is_ok() || length > USER_END;
    if file.file().positions() == Positions::Offsets && !has_end {
        return Err(Errno::EOVERFLOW);
    }
    let map = |seals: Seals| {
        let (object, may, is_shared) = file_object(&file, flags, rights, seals)?;
        let range = space()?.map(MapRequest {
            place: calls::place(flags, address),
            length,
            rights,
            may,
            flags: calls::area_flags(flags, is_shared),
            object: Some((object, offset / PAGE_SIZE)),
            populate: calls::populates(flags),
        })?;
        Ok(range.start() as usize)
    };
    match file.inode().regular() {
        Ok(content) => content.with_seals(map),
        Err(_) => map(Seals::empty()),
    }
}

type Mapped = (Arc<Backing>, Rights, bool);

/// What a mapping of a file maps, what `mprotect` may make of it, and whether it is shared.
fn file_object(
    file: &crate::files::Description,
    flags: u32,
    rights: Rights,
    seals: Seals,
) -> Result<Mapped, Errno> {
    let mut may = Rights::all();
    let is_shared = match flags & MAP_TYPE {
        abi::MAP_PRIVATE => false,
        abi::MAP_SHARED => true,
        abi::MAP_SHARED_VALIDATE if flags & !VALIDATED != 0 => return Err(Errno::EOPNOTSUPP),
        abi::MAP_SHARED_VALIDATE => true,
        _ => return Err(Errno::EINVAL),
    };
    if is_shared && !file.is_writable() {
        if rights.contains(Rights::WRITE) {
            return Err(Errno::EACCES);
        }
        may -= Rights::WRITE;
    }
    if !file.is_readable() {
        return Err(Errno::EACCES);
    }
    if is_shared && may.contains(Rights::WRITE) {
        let is_sealed = seals.intersects(Seals::ANY_WRITE);
        if is_sealed && rights.contains(Rights::WRITE) {
            return Err(Errno::EPERM);
        }
        may.set(Rights::WRITE, !is_sealed);
    }
    if rights.contains(Rights::EXECUTE) && !file.file().may_be_executed() {
        return Err(Errno::EPERM);
    }
    let object = file.file().backing(is_shared && may.contains(Rights::WRITE))?;
    if flags & abi::MAP_GROWSDOWN != 0 {
        return Err(Errno::EINVAL);
    }
    Ok((object, may, is_shared))
}

/// `munmap(address, length)`.
pub(super) fn munmap(arguments: &Arguments) -> Result<usize, Errno> {
    space()?.munmap(arguments[0], arguments[1])?;
    Ok(0)
}

/// `mprotect(address, length, protection)`.
pub(super) fn mprotect(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, ..] = *arguments;
    space()?.mprotect(address, length, protection, -1)?;
    Ok(0)
}

/// `pkey_mprotect(address, length, protection, key)`.
pub(super) fn pkey_mprotect(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, key, ..] = *arguments;
    space()?.mprotect(address, length, protection, key as i32)?;
    Ok(0)
}

/// `pkey_alloc(flags, rights)`: there are no keys, as on Linux on a CPU that has none.
pub(super) fn pkey_alloc(arguments: &Arguments) -> Result<usize, Errno> {
    let [flags, rights, ..] = *arguments;
    let known = abi::PKEY_DISABLE_ACCESS | abi::PKEY_DISABLE_WRITE;
    Err(if flags != 0 || rights & !u64::from(known) != 0 { Errno::EINVAL } else { Errno::ENOSPC })
}

/// `pkey_free(key)`: none was ever allocated.
pub(super) fn pkey_free(_arguments: &Arguments) -> Result<usize, Errno> {
    Err(Errno::EINVAL)
}

/// `mremap(address, old_length, new_length, flags, new_address)`.
pub(super) fn mremap(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, old_length, new_length, flags, new_address, _] = *arguments;
    Ok(space()?.mremap([address, old_length, new_length, flags, new_address])? as usize)
}

/// `remap_file_pages(address, length, protection, page, flags)`: shows other pages of the same object, as a mapping of its own in the place of
/// the old one. Its rights stay.
pub(super) fn remap_file_pages(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, page, flags, _] = *arguments;
    let (start, length) = (round_down(address), round_down(length));
    if protection != 0 || page.checked_add(length / PAGE_SIZE).is_none() {
        return Err(Errno::EINVAL);
    }
    let range = PageRange::new(start, length).map_err(|_| Errno::EINVAL)?;
    space()?.show_other_pages(range, page, flags as u32 & abi::MAP_NONBLOCK == 0)?;
    Ok(0)
}

/// `madvise(address, length, advice)`.
pub(super) fn madvise(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, advice, ..] = *arguments;
    space()?.madvise(address, length, advice)?;
    Ok(0)
}

/// `brk(address)`: where the heap ends afterwards, which says whether it moved.
pub(super) fn brk(arguments: &Arguments) -> Result<usize, Errno> {
    Ok(space()?.set_heap_end(arguments[0]) as usize)
}

/// `mincore(address, length, vector)`: one byte for each page.
pub(super) fn mincore(arguments: &Arguments) -> Result<usize, Errno> {
    /// Pages that are answered for at a time.
    const CHUNK: u64 = 1024;
    let [address, length, vector, ..] = *arguments;
    if !is_aligned(address) {
        return Err(Errno::EINVAL);
    }
    user::check_range(address, length).map_err(|_| Errno::ENOMEM)?;
    user::check_range(vector, length.div_ceil(PAGE_SIZE))?;
    let space = space()?;
    let pages = length.div_ceil(PAGE_SIZE);
    let mut done = 0;
    while done < pages {
        let count = (pages - done).min(CHUNK);
        let range = PageRange::new(address + done * PAGE_SIZE, count * PAGE_SIZE);
        let mut answer = vec![false; count as usize];
        space.incore(range.map_err(|_| Errno::ENOMEM)?, &mut answer)?;
        let bytes: vec::Vec<u8> = answer.into_iter().map(u8::from).collect();
        user::write_bytes(vector + done, &bytes)?;
        done += count;
    }
    Ok(0)
}

/// `msync(address, length, flags)`. What is not of a disk is where it belongs already.
pub(super) fn msync(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, flags, ..] = *arguments;
    let flags = flags as u32;
    let both = abi::MS_ASYNC | abi::MS_SYNC;
    if flags & !(both | abi::MS_INVALIDATE) != 0 || !is_aligned(address) || flags & both == both {
        return Err(Errno::EINVAL);
    }
    match PageRange::new(address, wrapping_round_up(length)) {
        Err(RangeError::Empty) => Ok(0),
        Err(_) => Err(Errno::ENOMEM),
        Ok(range) => {
            let space = space()?;
            if flags & abi::MS_INVALIDATE != 0 && space.has_locked(range) {
                return Err(Errno::EBUSY);
            }
            if flags & abi::MS_SYNC != 0 {
                for (backing, pages) in space.shared_pages(range) {
                    backing.synchronize(pages).map_err(|_| Errno::EIO)?;
                }
            }
            // What is mapped has been written, also if there is a gap.
            space.advise(range, Advice::Hint)?;
            Ok(0)
        }
    }
}

/// A length rounded up to pages as Linux does for the calls below: the last page's worth of numbers wraps to nothing.
fn wrapping_round_up(length: u64) -> u64 {
    round_down(length.wrapping_add(PAGE_SIZE - 1))
}

/// The pages that a range of bytes touches, for the calls that take any address; `None` if there is none.
fn pages_touched(address: u64, length: u64) -> Result<Option<PageRange>, Errno> {
    let start = round_down(address);
    let length = wrapping_round_up(length.wrapping_add(address - start));
    match PageRange::new(start, length) {
        Ok(range) => Ok(Some(range)),
        Err(RangeError::Empty) => Ok(None),
        Err(_) if start.checked_add(length).is_none() => Err(Errno::EINVAL),
        Err(_) => Err(Errno::ENOMEM),
    }
}

/// `mlock(address, length)`.
pub(super) fn mlock(arguments: &Arguments) -> Result<usize, Errno> {
    lock(arguments[0], arguments[1], false)
}

/// `mlock2(address, length, flags)`.
pub(super) fn mlock2(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, flags, ..] = *arguments;
    let on_fault = u64::from(abi::MLOCK_ONFAULT);
    if flags & !on_fault != 0 {
        return Err(Errno::EINVAL);
    }
    lock(address, length, flags & on_fault != 0)
}

fn lock(address: u64, length: u64, on_fault: bool) -> Result<usize, Errno> {
    let space = space()?;
    space.check_locking()?;
    if let Some(range) = pages_touched(address, length)? {
        space.lock(range, on_fault)?;
    }
    Ok(0)
}

/// `munlock(address, length)`.
pub(super) fn munlock(arguments: &Arguments) -> Result<usize, Errno> {
    if let Some(range) = pages_touched(arguments[0], arguments[1])? {
        space()?.unlock(range)?;
    }
    Ok(0)
}

/// `mlockall(flags)`.
pub(super) fn mlockall(arguments: &Arguments) -> Result<usize, Errno> {
    let flags = arguments[0] as u32;
    let known = abi::MCL_CURRENT | abi::MCL_FUTURE | abi::MCL_ONFAULT;
    if flags == 0 || flags & !known != 0 || flags == abi::MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    let has = |flag| flags & flag != 0;
    let space = space()?;
    space.check_locking()?;
    space.lock_all(has(abi::MCL_CURRENT), has(abi::MCL_FUTURE), has(abi::MCL_ONFAULT))?;
    Ok(0)
}

/// `munlockall()`.
pub(super) fn munlockall(_arguments: &Arguments) -> Result<usize, Errno> {
    space()?.unlock_all();
    Ok(0)
}
