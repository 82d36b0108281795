//! Calls that make files without a place in the tree: pipes, event counters, timers, signals.

use super::path::{check_flags, description, install, table};
use super::Errno;
use crate::memory::user;
use crate::files::filesystem::{ANONYMOUS, PIPES};
use crate::files::{
    self, Content, Description, Entry, EventCounter, Inode, Pipe, SignalFile, TimerFile,
};
use crate::process::signal::SignalSet;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Puts two descriptions into the table and their numbers into user memory. Neither stays if anything fails.
pub(super) fn install_pair(pair: [Arc<Description>; 2], close_on_exec: bool, address: u64) -> Result<usize, Errno> {
    let [first, second] = pair;
    let first = install(first, close_on_exec)? as i32;
    let stored = install(second, close_on_exec).and_then(|second| {
        let numbers = [first, second as i32];
        user::write(address, &numbers).inspect_err(|_| {
            let _ = table().and_then(|table| table.remove(numbers[1]));
        })
    });
    if let Err(error) = stored {
        let _ = table().and_then(|table| table.remove(first));
        return Err(error);
    }
    Ok(0)
}

pub(crate) fn pipe(&[address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    pipe2(&[address, 0, 0, 0, 0, 0])
}

pub(crate) fn pipe2(&[address, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let flags = flags as u32;
    check_flags(flags, abi::O_CLOEXEC | abi::O_NONBLOCK | abi::O_DIRECT)?;
    let pipe = Pipe::new();
    let inode = Inode::new(&PIPES, Content::Fifo(pipe.clone()), 0o600, &super::path::caller());
    let entry = Entry::unplaced(format!("pipe:[{}]", inode.number()).as_bytes(), inode);
    let status = flags & abi::O_NONBLOCK;
    let reader = Description::new(entry.clone(), Box::new(pipe.open(true, false)), abi::O_RDONLY | status);
    let writer = Description::new(entry, Box::new(pipe.open(false, true)), abi::O_WRONLY | status);
    install_pair([reader, writer], flags & abi::O_CLOEXEC != 0, address)
}

pub(crate) fn eventfd(&[value, ..]: &[u64; 6]) -> Result<usize, Errno> {
    eventfd2(&[value, 0, 0, 0, 0, 0])
}

pub(crate) fn eventfd2(&[value, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let flags = flags as u32;
    check_flags(flags, abi::EFD_SEMAPHORE | abi::EFD_CLOEXEC | abi::EFD_NONBLOCK)?;
    let counter = EventCounter::new(u64::from(value as u32), flags & abi::EFD_SEMAPHORE != 0);
    let mode = abi::O_RDWR | flags & abi::O_NONBLOCK;
    let description = files::anonymous(&ANONYMOUS, b"anon_inode:[eventfd]", Box::new(counter), mode);
    install(description, flags & abi::EFD_CLOEXEC != 0)
}

pub(crate) fn timerfd_create(&[clock, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let flags = flags as u32;
    check_flags(flags, abi::TFD_CLOEXEC | abi::TFD_NONBLOCK)?;
    let realtime = match clock as u32 {
        abi::CLOCK_REALTIME | abi::CLOCK_REALTIME_ALARM => true,
        abi::CLOCK_MONOTONIC | abi::CLOCK_BOOTTIME | abi::CLOCK_BOOTTIME_ALARM => false,
        _ => return Err(Errno::EINVAL),
    };
    let mode = abi::O_RDWR | flags & abi::O_NONBLOCK;
    let file = Box::new(TimerFile::new(realtime));
    let description = files::anonymous(&ANONYMOUS, b"anon_inode:[timerfd]", file, mode);
    install(description, flags & abi::TFD_CLOEXEC != 0)
}

pub(crate) fn signalfd(&[descriptor, set, size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    signalfd4(&[descriptor, set, size, 0, 0, 0])
}

pub(crate) fn signalfd4(&[number, set, size, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    const SET_SIZE: u64 = 8;
    let flags = flags as u32;
    if size != SET_SIZE {
        return Err(Errno::EINVAL);
    }
    let wanted = SignalSet::from_bits(user::read(set)?) & !SignalSet::UNBLOCKABLE;
    check_flags(flags, abi::O_CLOEXEC | abi::O_NONBLOCK)?;
    if number as i32 != -1 {
        let description = description(number)?;
        description.file_as::<SignalFile>().ok_or(Errno::EINVAL)?.set(wanted);
        return Ok(number as usize);
    }
    let mode = abi::O_RDWR | flags & abi::O_NONBLOCK;
    let file = Box::new(SignalFile::new(wanted));
    let description = files::anonymous(&ANONYMOUS, b"anon_inode:[signalfd]", file, mode);
    install(description, flags & abi::O_CLOEXEC != 0)
}

/// `struct itimerspec`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct TimerSetting {
    interval: [i64; 2],
    value: [i64; 2],
}

fn nanoseconds([seconds, nanoseconds]: [i64; 2]) -> Result<u64, Errno> {
    if seconds < 0 || !(0..1_000_000_000).contains(&nanoseconds) {
        return Err(Errno::EINVAL);
    }
    Ok((seconds as u64).saturating_mul(1_000_000_000).saturating_add(nanoseconds as u64))
}

fn seconds(nanoseconds: u64) -> [i64; 2] {
    [(nanoseconds / 1_000_000_000) as i64, (nanoseconds % 1_000_000_000) as i64]
}

fn store_setting(address: u64, setting: &files::TimerSetting) -> Result<usize, Errno> {
    let setting = TimerSetting {
        interval: seconds(setting.interval),
        value: seconds(setting.remaining.unwrap_or(0)),
    };
    user::write(address, &setting)?;
    Ok(0)
}

/// The timer behind a descriptor: EINVAL if it is something else.
fn timer(description: &Arc<Description>) -> Result<&TimerFile, Errno> {
    description.file_as::<TimerFile>().ok_or(Errno::EINVAL)
}

pub(crate) fn timerfd_settime(&[descriptor, flags, new, old, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let setting: TimerSetting = user::read(new)?;
    let (value, interval) = (nanoseconds(setting.value)?, nanoseconds(setting.interval)?);
    check_flags(flags as u32, abi::TFD_TIMER_ABSTIME | abi::TFD_TIMER_CANCEL_ON_SET)?;
    let description = description(descriptor)?;
    let absolute = flags as u32 & abi::TFD_TIMER_ABSTIME != 0;
    let former = timer(&description)?.set(value, interval, absolute);
    if old == 0 { Ok(0) } else { store_setting(old, &former) }
}

pub(crate) fn timerfd_gettime(&[descriptor, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let description = description(descriptor)?;
    store_setting(address, &timer(&description)?.setting())
}
