//! System V's shared memory. The segments are `ipc`'s; here are the calls and their mappings.

use super::{Arguments, Errno};
use crate::ipc::{BOUNDS, PRIVATE, Record, SEGMENT_DEVICE, SEGMENTS, Segment, Statistics};
use crate::memory::{MapRequest, current_space, user};
use crate::process::credentials::CAP_IPC_LOCK;
use crate::process::limits::Resource;
use crate::process::current;
use ::memory::{AreaFlags, AreaSnapshot, Place, Rights, USER_END, is_aligned, round_down, round_up};
use core::sync::atomic::Ordering;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const CREATE: u32 = 0o1000;
const EXCLUSIVE: u32 = 0o2000;
const HUGE_PAGES: u32 = 0o4000;

const READ_ONLY: u32 = 0o10000;
const ROUND: u32 = 0o20000;
const REMAP: u32 = 0o40000;
const EXECUTE: u32 = 0o100_000;

const REMOVE: u32 = 0;
const SET: u32 = 1;
const STATUS: u32 = 2;
const BOUNDS_OF_ALL: u32 = 3;
const LOCK: u32 = 11;
const UNLOCK: u32 = 12;
const STATUS_OF_PLACE: u32 = 13;
const USE_OF_ALL: u32 = 14;
const STATUS_OF_ANY: u32 = 15;

/// `struct shminfo64`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct BoundsRecord {
    most_size: u64,
    least_size: u64,
    most_segments: u64,
    most_attached: u64,
    most_pages: u64,
    unused: [u64; 4],
}

/// `struct shm_info`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct UseRecord {
    segments: u64,
    pages: u64,
    resident_pages: u64,
    swapped_pages: u64,
    swaps: [u64; 2],
}

/// `shmget(key, size, flags)`.
pub(super) fn shmget(&[key, size, flags, ..]: &Arguments) -> Result<usize, Errno> {
    let flags = flags as u32;
    if flags & HUGE_PAGES != 0 && flags & CREATE != 0 {
        // There are none to be had, as on Linux where nobody has set any aside.
        return Err(Errno::ENOMEM);
    }
    let (key, creates) = (key as i32, flags & CREATE != 0 || key as i32 == PRIVATE);
    let number = SEGMENTS.lock().get(key, size, flags & 0o777, creates, flags & EXCLUSIVE != 0)?;
    Ok(number as usize)
}

/// `shmat(number, address, flags)`.
pub(super) fn shmat(&[number, address, flags, ..]: &Arguments) -> Result<usize, Errno> {
    let flags = flags as u32;
    let address = attached_address(address, flags)?;
    let (rights, wanted) = rights(flags);
    let space = current_space().ok_or(Errno::ENOMEM)?;
    let number = number as i32;
    let (memory, length) = {
        let mut segments = SEGMENTS.lock();
        let segment = segments.find(number)?;
        segment.permission.check(wanted)?;
        let length = round_up(segment.size).ok_or(Errno::ENOMEM)?;
        (segment.memory().ok_or(Errno::EIDRM)?, length)
    };
    let may = if flags & READ_ONLY != 0 { Rights::all() - Rights::WRITE } else { Rights::all() };
    let range = space.map(MapRequest {
        place: place(address, length, flags)?,
        length,
        rights,
        may,
        flags: AreaFlags::SHARED,
        object: Some((memory, 0)),
        populate: false,
    });
    let range = range.map_err(|error| match Errno::from(error) {
        Errno::EEXIST => Errno::EINVAL,
        other => other,
    })?;
    if let Ok(segment) = SEGMENTS.lock().find(number) {
        segment.note_attached();
    }
    Ok(range.start() as usize)
}

/// Where a segment is to go; 0 for anywhere.
fn attached_address(address: u64, flags: u32) -> Result<u64, Errno> {
    if address == 0 {
        return if flags & REMAP != 0 { Err(Errno::EINVAL) } else { Ok(0) };
    }
    if is_aligned(address) {
        return Ok(address);
    }
    // To replace something at the address 0, rounded down, is refused as well.
    match round_down(address) {
        _ if flags & ROUND == 0 => Err(Errno::EINVAL),
        0 if flags & REMAP != 0 => Err(Errno::EINVAL),
        rounded => Ok(rounded),
    }
}

fn place(address: u64, length: u64, flags: u32) -> Result<Place, Errno> {
    match address {
        0 => Ok(Place::Anywhere { hint: 0 }),
        _ if flags & REMAP != 0 => Ok(Place::Fixed(address)),
        _ if address.checked_add(length).is_none_or(|end| end > USER_END) => Err(Errno::EINVAL),
        _ => Ok(Place::FixedIfFree(address)),
    }
}

/// The rights of a mapping, and those that the segment must give for it.
fn rights(flags: u32) -> (Rights, u32) {
    let mut rights = Rights::READ;
    let mut wanted = 0o444;
    if flags & READ_ONLY == 0 {
        rights |= Rights::WRITE;
        wanted |= 0o222;
    }
    if flags & EXECUTE != 0 {
        rights |= Rights::EXECUTE;
        wanted |= 0o111;
    }
    (rights, wanted)
}

/// `shmdt(address)`.
pub(super) fn shmdt(&[address, ..]: &Arguments) -> Result<usize, Errno> {
    if !is_aligned(address) {
        return Err(Errno::EINVAL);
    }
    let space = current_space().ok_or(Errno::EINVAL)?;
    let mut detached = None;
    let mut next = address;
    while let Some(area) = space.area_from(next) {
        next = area.range.end();
        let Some(number) = attached_so(&area, address) else { continue };
        if *detached.get_or_insert(number) == number {
            space.unmap(area.range)?;
        }
    }
    if let Ok(segment) = SEGMENTS.lock().find(detached.ok_or(Errno::EINVAL)?) {
        segment.note_detached();
    }
    Ok(0)
}

/// The segment of which an area shows as much as it would if all of the segment was attached at `address`: parts may have been unmapped since.
fn attached_so(area: &AreaSnapshot, address: u64) -> Option<i32> {
    let (identity, _) = area.object.as_ref()?;
    let lies_so = area.range.start().checked_sub(address) == Some(area.offset);
    (identity.device == SEGMENT_DEVICE && lies_so).then_some(identity.inode as i32)
}

/// `shmctl(number, command, buffer)`.
pub(super) fn shmctl(&[number, command, buffer, ..]: &Arguments) -> Result<usize, Errno> {
    let (number, command) = (number as i32, command as u32);
    if number < 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        BOUNDS_OF_ALL => bounds(buffer),
        USE_OF_ALL => use_of_all(buffer),
        STATUS => {
            let status = readable(SEGMENTS.lock().find(number)?)?;
            user::write(buffer, &status)?;
            Ok(0)
        }
        STATUS_OF_PLACE | STATUS_OF_ANY => {
            let (found, status) = {
                let mut segments = SEGMENTS.lock();
                let (found, segment) = segments.at(number)?;
                let free = command == STATUS_OF_ANY;
                (found, if free { segment.statistics() } else { readable(segment)? })
            };
            user::write(buffer, &status)?;
            Ok(found as usize)
        }
        SET => {
            let wanted: Statistics = user::read(buffer)?;
            let mut segments = SEGMENTS.lock();
            let segment = segments.find(number)?;
            segment.permission.check_owner()?;
            segment.change(Record::change(&wanted.permission));
            Ok(0)
        }
        REMOVE => SEGMENTS.lock().remove(number).map(|()| 0),
        LOCK | UNLOCK => lock(number, command == LOCK),
        _ => Err(Errno::EINVAL),
    }
}

fn readable(segment: &Segment) -> Result<Statistics, Errno> {
    segment.permission.check(0o444)?;
    Ok(segment.statistics())
}

fn lock(number: i32, locked: bool) -> Result<usize, Errno> {
    let mut segments = SEGMENTS.lock();
    let segment = segments.find(number)?;
    let process = current().process().clone();
    if !process.credentials().has(CAP_IPC_LOCK) {
        segment.permission.check_owner()?;
        if locked && process.limit(Resource::MEMLOCK).soft == 0 {
            return Err(Errno::EPERM);
        }
    }
    segment.set_locked(locked);
    Ok(0)
}

fn bounds(buffer: u64) -> Result<usize, Errno> {
    let most_segments = BOUNDS.segments.load(Ordering::Relaxed);
    let record = BoundsRecord {
        most_size: BOUNDS.size.load(Ordering::Relaxed),
        least_size: 1,
        most_segments,
        most_attached: most_segments,
        most_pages: BOUNDS.pages.load(Ordering::Relaxed),
        unused: [0; 4],
    };
    user::write(buffer, &record)?;
    Ok(SEGMENTS.lock().highest_place() as usize)
}

fn use_of_all(buffer: u64) -> Result<usize, Errno> {
    let (totals, highest) = {
        let mut segments = SEGMENTS.lock();
        (segments.totals(), segments.highest_place())
    };
    let record = UseRecord {
        segments: totals.segments as u64,
        pages: totals.pages,
        resident_pages: totals.resident_pages,
        swapped_pages: 0,
        swaps: [0; 2],
    };
    user::write(buffer, &record)?;
    Ok(highest as usize)
}

const _: () = assert!(size_of::<Statistics>() == 112);
