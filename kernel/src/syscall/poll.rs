//! Waiting for several files: `poll`, `ppoll`, `select`, `pselect6`.

use super::path::{descriptor_limit, table};
use super::Errno;
use crate::memory::user;
use crate::files::poll::{Wanted, WantedList};
use crate::files::{FileTable, Readiness};
use crate::process::signal::{SignalSet, with_mask};
use crate::time;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::offset_of;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Records that are read at a time.
const RECORDS: usize = 64;

/// `struct pollfd`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Polled {
    descriptor: i32,
    events: u16,
    found: u16,
}

/// Reads the mask of the calls that take one. None if there is none.
pub(crate) fn read_mask(address: u64, size: u64) -> Result<Option<SignalSet>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    if size != 8 {
        return Err(Errno::EINVAL);
    }
    Ok(Some(SignalSet::from_bits(user::read(address)?)))
}

/// Milliseconds from now as a deadline; a negative number is for ever.
pub(crate) fn deadline_in_milliseconds(milliseconds: i32) -> Option<u64> {
    let milliseconds = u64::try_from(milliseconds).ok()?;
    Some(time::now() + milliseconds * 1_000_000)
}

/// A `timespec` from now as a deadline; no `timespec` is for ever.
pub(crate) fn deadline_after(address: u64) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, nanoseconds]: [i64; 2] = user::read(address)?;
    if seconds < 0 || !(0..1_000_000_000).contains(&nanoseconds) {
        return Err(Errno::EINVAL);
    }
    let duration = (seconds as u64).saturating_mul(time::SECOND).saturating_add(nanoseconds as u64);
    Ok(Some(time::now().saturating_add(duration)))
}

fn poll_files(address: u64, count: u64, deadline: Option<u64>) -> Result<usize, Errno> {
    let count = count as u32 as usize;
    if count > descriptor_limit() {
        return Err(Errno::EINVAL);
    }
    let table = table()?;
    let mut files = WantedList::default();
    let record = |index: usize| address.wrapping_add((index * size_of::<Polled>()) as u64);
    // A descriptor that stands for nothing is an event by itself: then nothing is waited for.
    let mut any_invalid = false;
    let mut records = [const { Polled { descriptor: 0, events: 0, found: 0 } }; RECORDS];
    for first in (0..count).step_by(RECORDS) {
        let records = &mut records[..(count - first).min(RECORDS)];
        user::read_bytes(record(first), records.as_mut_bytes())?;
        for polled in &*records {
            let file = table.get(polled.descriptor).ok().filter(|found| !found.is_path_only());
            any_invalid |= polled.descriptor >= 0 && file.is_none();
            let events = Readiness::from_bits_truncate(u32::from(polled.events));
            files.push(Wanted { number: polled.descriptor, file, events, found: Readiness::empty() })?;
        }
    }
    files.wait(if any_invalid { Some(0) } else { deadline })?;
    let mut events = 0;
    for (index, wanted) in files.iter().enumerate() {
        let is_invalid = wanted.number >= 0 && wanted.file.is_none();
        let found = if is_invalid { Readiness::INVALID } else { wanted.found };
        // Only the answer is stored: the rest of the record is the program's.
        user::write(record(index) + offset_of!(Polled, found) as u64, &(found.bits() as u16))?;
        events += usize::from(!found.is_empty());
    }
    Ok(events)
}

pub(crate) fn poll(&[address, count, milliseconds, ..]: &[u64; 6]) -> Result<usize, Errno> {
    poll_files(address, count, deadline_in_milliseconds(milliseconds as i32))
}

pub(crate) fn ppoll(&[address, count, timeout, mask, mask_size, _]: &[u64; 6]) -> Result<usize, Errno> {
    let deadline = deadline_after(timeout)?;
    let mask = read_mask(mask, mask_size)?;
    let result = with_mask(mask, || poll_files(address, count, deadline));
    store_rest(timeout, deadline, 1);
    result
}

/// Stores what is left until `deadline`, as Linux does; `unit` is the nanoseconds of the second word's unit. Memory that
/// cannot be written is passed over.
pub(super) fn store_rest(address: u64, deadline: Option<u64>, unit: u64) {
    if let Some(deadline) = deadline {
        let left = deadline.saturating_sub(time::now());
        let words = [(left / time::SECOND) as i64, (left % time::SECOND / unit) as i64];
        let _ = user::write(address, &words);
    }
}

/// The three sets of `select`: what each asks about, and what counts as ready for it.
const SETS: [(Readiness, Readiness); 3] = [
    (Readiness::READABLE, Readiness::READABLE.union(Readiness::HANGUP).union(Readiness::ERROR)),
    (Readiness::WRITABLE, Readiness::WRITABLE.union(Readiness::ERROR)),
    (Readiness::PRIORITY, Readiness::PRIORITY),
];

/// Bits of one set, 64 descriptors to a word.
type Set = Vec<u64>;

fn read_set(address: u64, words: usize) -> Result<Option<Set>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let mut set = vec![0u64; words];
    user::read_bytes(address, set.as_mut_slice().as_mut_bytes())?;
    Ok(Some(set))
}

/// The files in the sets, and what is asked about each. EBADF for one that is not open.
fn selected(sets: &[Option<Set>; 3], count: usize, table: &FileTable) -> Result<WantedList, Errno> {
    let mut files = WantedList::default();
    for number in 0..count {
        let is_in = |set: &Option<Set>| {
            set.as_ref().is_some_and(|set| set[number / 64] & 1 << (number % 64) != 0)
        };
        let asked = sets.iter().zip(SETS).filter(|(set, _)| is_in(set));
        let events = asked.fold(Readiness::empty(), |events, (_, (asks, _))| events | asks);
        if !events.is_empty() {
            let number = number as i32;
            files.push(Wanted { number, file: Some(table.get(number)?), events, found: Readiness::empty() })?;
        }
    }
    Ok(files)
}

fn select_files(count: u64, addresses: [u64; 3], deadline: Option<u64>) -> Result<usize, Errno> {
    if (count as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let table = table()?;
    // No descriptor can be above the limit.
    let count = (count as usize).min(descriptor_limit());
    let words = count.div_ceil(64);
    let mut sets = [None, None, None];
    for (set, address) in sets.iter_mut().zip(addresses) {
        *set = read_set(address, words)?;
    }
    let mut files = selected(&sets, count, &table)?;
    files.wait(deadline)?;
    let mut total = 0;
    for ((set, (_, counts)), address) in sets.iter_mut().zip(SETS).zip(addresses) {
        let Some(set) = set else { continue };
        let asked = core::mem::replace(set, vec![0; words]);
        for wanted in files.iter() {
            let (word, bit) = (wanted.number as usize / 64, 1 << (wanted.number % 64));
            if asked[word] & bit != 0 && wanted.found.intersects(counts) {
                set[word] |= bit;
                total += 1;
            }
        }
        user::write_bytes(address, set.as_slice().as_bytes())?;
    }
    Ok(total)
}

pub(crate) fn select(&[count, read, write, except, timeout, _]: &[u64; 6]) -> Result<usize, Errno> {
    let deadline = if timeout == 0 {
        None
    } else {
        let [seconds, microseconds]: [i64; 2] = user::read(timeout)?;
        if seconds < 0 || microseconds < 0 {
            return Err(Errno::EINVAL);
        }
        let seconds = (seconds as u64).saturating_mul(time::SECOND);
        let duration = seconds.saturating_add((microseconds as u64).saturating_mul(1000));
        Some(time::now().saturating_add(duration))
    };
    let result = select_files(count, [read, write, except], deadline);
    store_rest(timeout, deadline, 1000);
    result
}

pub(crate) fn pselect6(&[count, read, write, except, timeout, mask]: &[u64; 6]) -> Result<usize, Errno> {
    let deadline = deadline_after(timeout)?;
    let mask = if mask == 0 {
        None
    } else {
        let [address, size]: [u64; 2] = user::read(mask)?;
        read_mask(address, size)?
    };
    let result = with_mask(mask, || select_files(count, [read, write, except], deadline));
    store_rest(timeout, deadline, 1);
    result
}
