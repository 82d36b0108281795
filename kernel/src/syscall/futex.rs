//! `futex`: arguments, operations and timeouts. The sleeping and waking is `process::futex`.

use super::time::read_timeout;
use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::futex::{self, WakeOperation, Word};
use crate::process::{current, find_thread, robust_list};
use crate::time;
use core::sync::atomic::Ordering;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// `futex(word, operation, value, timeout or second count, other word, third value)`.
pub(super) fn futex(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, operation, value, fourth, other, third] = *arguments;
    let operation = operation as u32;
    let command = operation & !(abi::FUTEX_PRIVATE_FLAG | abi::FUTEX_CLOCK_REALTIME);
    let shared = operation & abi::FUTEX_PRIVATE_FLAG == 0;
    let is_realtime = operation & abi::FUTEX_CLOCK_REALTIME != 0;
    let value = value as u32;
    let word = || Word::new(address, shared);
    let other = || Word::new(other, shared);
    // This looks at the clock; for all others the flag is refused.
    if is_realtime && command != abi::FUTEX_WAIT_BITSET {
        return Err(Errno::ENOSYS);
    }
    match command {
        abi::FUTEX_WAIT => {
            let timeout = read_timeout(fourth)?;
            let deadline = timeout.map(|timeout| time::now().saturating_add(timeout));
            futex::wait(word()?, value, u32::MAX, deadline)
        }
        abi::FUTEX_WAIT_BITSET => {
            let deadline = absolute_deadline(fourth, is_realtime)?;
            futex::wait(word()?, value, third as u32, deadline)
        }
        abi::FUTEX_WAKE => futex::wake(word()?, wake_count(value), u32::MAX),
        abi::FUTEX_WAKE_BITSET => futex::wake(word()?, wake_count(value), third as u32),
        abi::FUTEX_REQUEUE | abi::FUTEX_CMP_REQUEUE => {
            let expected = (command == abi::FUTEX_CMP_REQUEUE).then_some(third as u32);
            let (wake, moves) = (requeue_count(value)?, requeue_count(fourth as u32)?);
            futex::requeue(word()?, other()?, wake, moves, expected)
        }
        abi::FUTEX_WAKE_OP => {
            let operation = WakeOperation::decode(third as u32)?;
            let (first, second) = (wake_count(value), wake_count(fourth as u32));
            futex::wake_with_operation(word()?, other()?, first, second, operation)
        }
        // Priority inheritance is not offered; libc falls back or reports it.
        _ => Err(Errno::ENOSYS),
    }
}

/// `struct futex_waitv`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Waiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// `futex_waitv(waiters, count, flags, timeout, clock)`: waits for the first of several words.
pub(super) fn futex_waitv(&[waiters, count, flags, timeout, clock, _]: &Arguments) -> Result<usize, Errno> {
    /// A word of four bytes, the only size that there is.
    const FOUR_BYTES: u32 = 2;
    const MOST: u32 = 128;
    let count = count as u32;
    if flags as u32 != 0 || count == 0 || count > MOST || waiters == 0 {
        return Err(Errno::EINVAL);
    }
    let deadline = match (timeout, clock as u32) {
        (0, _) => None,
        (_, abi::CLOCK_REALTIME) => absolute_deadline(timeout, true)?,
        (_, abi::CLOCK_MONOTONIC) => absolute_deadline(timeout, false)?,
        _ => return Err(Errno::EINVAL),
    };
    let mut words = Vec::with_capacity(count as usize);
    for index in 0..u64::from(count) {
        let waiter: Waiter = user::read(waiters.wrapping_add(index * size_of::<Waiter>() as u64))?;
        let known = FOUR_BYTES | abi::FUTEX_PRIVATE_FLAG;
        if waiter.flags & !known != 0 || waiter.flags & FOUR_BYTES == 0 || waiter.reserved != 0 {
            return Err(Errno::EINVAL);
        }
        let word = Word::new(waiter.address, waiter.flags & abi::FUTEX_PRIVATE_FLAG == 0);
        words.push((word?, waiter.value as u32));
    }
    futex::wait_for_any(&words, deadline)
}

/// How many to wake. Linux wakes one even when asked for none, and programs have come to see it.
fn wake_count(value: u32) -> usize {
    (value as i32).max(1) as usize
}

fn requeue_count(value: u32) -> Result<usize, Errno> {
    usize::try_from(value as i32).map_err(|_| Errno::EINVAL)
}

fn absolute_deadline(pointer: u64, is_realtime: bool) -> Result<Option<u64>, Errno> {
    let Some(at) = read_timeout(pointer)? else { return Ok(None) };
    let offset = if is_realtime { time::realtime_offset() } else { 0 };
    Ok(Some(at.saturating_sub(offset)))
}

/// `set_robust_list(head, size)`.
pub(super) fn set_robust_list(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[1] != robust_list::HEAD_SIZE {
        return Err(Errno::EINVAL);
    }
    current().robust_list.store(arguments[0], Ordering::Relaxed);
    Ok(0)
}

/// `get_robust_list(thread, head pointer, size pointer)`.
pub(super) fn get_robust_list(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, head, size, ..] = *arguments;
    let thread = match id as u32 {
        0 => current(),
        id => find_thread(id).ok_or(Errno::ESRCH)?,
    };
    user::write(size, &robust_list::HEAD_SIZE)?;
    user::write(head, &thread.robust_list.load(Ordering::Relaxed))?;
    Ok(0)
}
