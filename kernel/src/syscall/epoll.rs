//! Epoll's calls.

use super::path::{description, install};
use super::poll::{deadline_after, deadline_in_milliseconds, read_mask};
use super::Errno;
use crate::memory::user;
use crate::files::epoll::{Epoll, Request};
use crate::files::filesystem::ANONYMOUS;
use crate::files::{self, Description};
use crate::process::signal::with_mask;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// `struct epoll_event`, which has no padding on x86-64.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C, packed)]
struct Event {
    events: u32,
    data: u64,
}

/// The most events that one call can return.
const MOST_EVENTS: u64 = i32::MAX as u64 / size_of::<Event>() as u64;

pub(crate) fn epoll_create(&[size, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if size as i32 <= 0 { Err(Errno::EINVAL) } else { epoll_create1(&[0; 6]) }
}

pub(crate) fn epoll_create1(&[flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    if flags as u32 & !abi::EPOLL_CLOEXEC != 0 {
        return Err(Errno::EINVAL);
    }
    let file = Box::new(Epoll::new());
    let description = files::anonymous(&ANONYMOUS, b"anon_inode:[eventpoll]", file, abi::O_RDWR);
    install(description, flags as u32 & abi::EPOLL_CLOEXEC != 0)
}

/// The instance behind a descriptor: EINVAL if it is something else.
fn instance(description: &Arc<Description>) -> Result<&Epoll, Errno> {
    description.file_as::<Epoll>().ok_or(Errno::EINVAL)
}

pub(crate) fn epoll_ctl(&[descriptor, operation, watched, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let operation = operation as u32;
    let request = if operation == abi::EPOLL_CTL_DEL {
        Request { events: 0, data: 0 }
    } else {
        let event: Event = user::read(address)?;
        Request { events: event.events, data: event.data }
    };
    let epoll = description(descriptor)?;
    let target = description(watched)?;
    if target.is_path_only() {
        return Err(Errno::EBADF);
    }
    if target.file().observers()[0].is_none() {
        return Err(Errno::EPERM);
    }
    let epoll = instance(&epoll)?;
    if target.file_as::<Epoll>().is_some_and(|target| core::ptr::eq(target, epoll)) {
        return Err(Errno::EINVAL);
    }
    match operation {
        abi::EPOLL_CTL_ADD => epoll.add(watched as i32, &target, request)?,
        abi::EPOLL_CTL_MOD => epoll.modify(watched as i32, &target, request)?,
        abi::EPOLL_CTL_DEL => epoll.remove(watched as i32, &target)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn wait(descriptor: u64, address: u64, most: u64, deadline: Option<u64>) -> Result<usize, Errno> {
    if most as i32 <= 0 || most as u32 as u64 > MOST_EVENTS {
        return Err(Errno::EINVAL);
    }
    let most = most as u32 as usize;
    user::check_range(address, (most * size_of::<Event>()) as u64)?;
    let description = description(descriptor)?;
    let found = instance(&description)?.wait(most, deadline)?;
    for (index, request) in found.iter().enumerate() {
        let event = Event { events: request.events, data: request.data };
        user::write(address + (index * size_of::<Event>()) as u64, &event)?;
    }
    Ok(found.len())
}

pub(crate) fn epoll_wait(&[descriptor, address, most, milliseconds, ..]: &[u64; 6]) -> Result<usize, Errno> {
    wait(descriptor, address, most, deadline_in_milliseconds(milliseconds as i32))
}

pub(crate) fn epoll_pwait(&[descriptor, address, most, milliseconds, mask, size]: &[u64; 6]) -> Result<usize, Errno> {
    let mask = read_mask(mask, size)?;
    with_mask(mask, || wait(descriptor, address, most, deadline_in_milliseconds(milliseconds as i32)))
}

pub(crate) fn epoll_pwait2(&[descriptor, address, most, timeout, mask, size]: &[u64; 6]) -> Result<usize, Errno> {
    let deadline = deadline_after(timeout)?;
    let mask = read_mask(mask, size)?;
    with_mask(mask, || wait(descriptor, address, most, deadline))
}
