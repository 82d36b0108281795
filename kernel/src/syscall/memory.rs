//! Memory: `mmap` and its family.
//!
//! Arguments are checked here in Linux's order, because a program that passes two mistakes at once sees the first;
//! numbers become typed ranges, and everything else is the `memory` crate's.

use alloc::sync::Arc;
use alloc::vec;

use ::memory::{
    Advice, AreaFlags, PAGE_SIZE, PageRange, Place, RangeError, MoveTo, RemapRequest, Rights, is_aligned, round_down,
    round_up,
};
use linux_raw_sys::general as abi;

use super::{Arguments, Errno, path};
use crate::memory::{AddressSpace, Backing, MapRequest, current_space, user, zero_backing};

/// Protections that `mprotect` knows (`PROT_SEM` means nothing on x86).
const KNOWN_PROTECTION: u64 = 0xf;
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

fn rights(protection: u64) -> Rights {
    Rights::from_bits_truncate(protection as u8)
}

/// `mmap(address, length, protection, flags, descriptor, offset)`.
pub(super) fn mmap(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, flags, descriptor, offset] = *arguments;
    let flags = flags as u32;
    if !is_aligned(offset) {
        return Err(Errno::EINVAL);
    }
    let is_anonymous = flags & abi::MAP_ANONYMOUS != 0;
    let file = if is_anonymous { None } else { Some(path::usable_description(descriptor)?) };
    if flags & abi::MAP_HUGETLB != 0 || length == 0 {
        return Err(Errno::EINVAL);
    }
    let pages = round_up(length).ok_or(Errno::ENOMEM)? / PAGE_SIZE;
    let first_page = offset / PAGE_SIZE;
    if first_page.checked_add(pages).is_none() {
        return Err(Errno::EOVERFLOW);
    }
    let (object, may, is_shared) = match file {
        Some(file) => file_object(&file, flags, rights(protection))?,
        None => anonymous_object(flags)?,
    };
    let range = space()?.map(MapRequest {
        place: place(flags, address),
        length,
        rights: rights(protection),
        may,
        flags: area_flags(flags, is_shared),
        object: object.map(|object| (object, if is_anonymous { 0 } else { first_page })),
        populate: flags & abi::MAP_LOCKED != 0
            || flags & (abi::MAP_POPULATE | abi::MAP_NONBLOCK) == abi::MAP_POPULATE,
    })?;
    Ok(range.start() as usize)
}

fn place(flags: u32, address: u64) -> Place {
    if flags & abi::MAP_FIXED_NOREPLACE != 0 {
        Place::FixedIfFree(address)
    } else if flags & abi::MAP_FIXED != 0 {
        Place::Fixed(address)
    } else {
        Place::Anywhere { hint: address }
    }
}

fn area_flags(flags: u32, is_shared: bool) -> AreaFlags {
    let mut area = AreaFlags::empty();
    area.set(AreaFlags::SHARED, is_shared);
    area.set(AreaFlags::GROWS_DOWN, flags & abi::MAP_GROWSDOWN != 0);
    area.set(AreaFlags::NO_RESERVE, flags & abi::MAP_NORESERVE != 0);
    area.set(AreaFlags::LOCKED, flags & abi::MAP_LOCKED != 0);
    area
}

type Mapped = (Option<Arc<Backing>>, Rights, bool);

/// What a mapping of a file maps, what `mprotect` may make of it, and whether it is shared.
fn file_object(file: &crate::files::Description, flags: u32, rights: Rights) -> Result<Mapped, Errno> {
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
    let object = file.file().backing()?;
    if flags & abi::MAP_GROWSDOWN != 0 {
        return Err(Errno::EINVAL);
    }
    Ok((Some(object), may, is_shared))
}

fn anonymous_object(flags: u32) -> Result<Mapped, Errno> {
    match flags & MAP_TYPE {
        abi::MAP_PRIVATE => Ok((None, Rights::all(), false)),
        abi::MAP_SHARED if flags & abi::MAP_GROWSDOWN == 0 => Ok((Some(zero_backing()), Rights::all(), true)),
        _ => Err(Errno::EINVAL),
    }
}

/// `munmap(address, length)`.
pub(super) fn munmap(arguments: &Arguments) -> Result<usize, Errno> {
    let range = PageRange::new(arguments[0], arguments[1]).map_err(|_| Errno::EINVAL)?;
    space()?.unmap(range)?;
    Ok(0)
}

/// `mprotect(address, length, protection)`.
pub(super) fn mprotect(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, protection, ..] = *arguments;
    let grows_down = protection & u64::from(abi::PROT_GROWSDOWN) != 0;
    let grows_up = protection & u64::from(abi::PROT_GROWSUP) != 0;
    let protection = protection & !u64::from(abi::PROT_GROWSDOWN | abi::PROT_GROWSUP);
    if grows_down && grows_up {
        return Err(Errno::EINVAL);
    }
    let range = match PageRange::new(address, length) {
        Err(RangeError::Unaligned) => return Err(Errno::EINVAL),
        Err(RangeError::Empty) => return Ok(0),
        Err(RangeError::TooHigh) => Err(Errno::ENOMEM),
        Ok(range) => Ok(range),
    };
    // No mapping grows up on x86.
    if protection & !KNOWN_PROTECTION != 0 || (grows_up && range.is_ok()) {
        return Err(Errno::EINVAL);
    }
    space()?.protect(range?, rights(protection), grows_down)?;
    Ok(0)
}

/// `mremap(address, old_length, new_length, flags, new_address)`.
pub(super) fn mremap(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, old_length, new_length, flags, new_address, _] = *arguments;
    let has = |flag: u32| flags & u64::from(flag) != 0;
    let known = abi::MREMAP_MAYMOVE | abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP;
    let may_move = has(abi::MREMAP_MAYMOVE);
    let keep_source = has(abi::MREMAP_DONTUNMAP);
    let is_fixed = has(abi::MREMAP_FIXED);
    if flags & !u64::from(known) != 0
        || (is_fixed && !may_move)
        || (keep_source && (!may_move || old_length != new_length))
    {
        return Err(Errno::EINVAL);
    }
    let to = if is_fixed { MoveTo::Fixed(new_address) } else { MoveTo::Hint(new_address) };
    let request = RemapRequest { address, old_length, new_length, may_move, to, keep_source };
    Ok(space()?.remap(request)? as usize)
}

/// `madvise(address, length, advice)`.
pub(super) fn madvise(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, advice, ..] = *arguments;
    let advice = advice_of(advice as u32)?;
    let range = match PageRange::new(address, length) {
        Ok(range) => range,
        Err(RangeError::Empty) => return Ok(0),
        Err(RangeError::Unaligned) => return Err(Errno::EINVAL),
        // The end wraps: EINVAL. Else it lies where nothing is mapped.
        Err(RangeError::TooHigh) => {
            let end = round_up(length).and_then(|length| address.checked_add(length));
            return Err(if end.is_some() { Errno::ENOMEM } else { Errno::EINVAL });
        }
    };
    space()?.advise(range, advice)?;
    Ok(0)
}

fn advice_of(number: u32) -> Result<Advice, Errno> {
    let mark = |flag, set| Advice::Mark { flag, set };
    Ok(match number {
        abi::MADV_DONTNEED | abi::MADV_DONTNEED_LOCKED => Advice::DontNeed,
        abi::MADV_FREE => Advice::Free,
        abi::MADV_WILLNEED => Advice::WillNeed,
        abi::MADV_POPULATE_READ => Advice::Populate { write: false },
        abi::MADV_POPULATE_WRITE => Advice::Populate { write: true },
        abi::MADV_DONTFORK => mark(AreaFlags::NOT_FORKED, true),
        abi::MADV_DOFORK => mark(AreaFlags::NOT_FORKED, false),
        abi::MADV_WIPEONFORK => mark(AreaFlags::WIPED_ON_FORK, true),
        abi::MADV_KEEPONFORK => mark(AreaFlags::WIPED_ON_FORK, false),
        abi::MADV_DONTDUMP => mark(AreaFlags::NOT_DUMPED, true),
        abi::MADV_DODUMP => mark(AreaFlags::NOT_DUMPED, false),
        abi::MADV_NORMAL
        | abi::MADV_RANDOM
        | abi::MADV_SEQUENTIAL
        | abi::MADV_MERGEABLE
        | abi::MADV_UNMERGEABLE
        | abi::MADV_HUGEPAGE
        | abi::MADV_NOHUGEPAGE
        | abi::MADV_COLD
        | abi::MADV_PAGEOUT => Advice::Hint,
        _ => return Err(Errno::EINVAL),
    })
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

/// `msync(address, length, flags)`. Files live in memory, so what was stored is where it belongs already.
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
            space()?.advise(range, Advice::Hint)?;
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
    lock(arguments[0], arguments[1], true)
}

/// `mlock2(address, length, flags)`.
pub(super) fn mlock2(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, length, flags, ..] = *arguments;
    let on_fault = u64::from(abi::MLOCK_ONFAULT);
    if flags & !on_fault != 0 {
        return Err(Errno::EINVAL);
    }
    lock(address, length, flags & on_fault == 0)
}

fn lock(address: u64, length: u64, bring_in: bool) -> Result<usize, Errno> {
    if let Some(range) = pages_touched(address, length)? {
        space()?.lock(range, bring_in)?;
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

/// `mlockall(flags)`. Mappings made later are not locked: they stay in memory all the same.
pub(super) fn mlockall(arguments: &Arguments) -> Result<usize, Errno> {
    let flags = arguments[0] as u32;
    let known = abi::MCL_CURRENT | abi::MCL_FUTURE | abi::MCL_ONFAULT;
    if flags == 0 || flags & !known != 0 || flags == abi::MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    if flags & abi::MCL_CURRENT != 0 {
        space()?.lock_all(flags & abi::MCL_ONFAULT == 0);
    }
    Ok(0)
}

/// `munlockall()`.
pub(super) fn munlockall(_arguments: &Arguments) -> Result<usize, Errno> {
    space()?.unlock_all();
    Ok(0)
}
