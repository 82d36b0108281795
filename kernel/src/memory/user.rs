//! Access to the running program's memory, with Linux's answers.
//!
//! A pointer from a program is an allegation: whatever is wrong with it (not mapped, not allowed, beyond user space,
//! beyond the end of a mapped file) is [`Errno::EFAULT`]. A lack of memory while a page is brought in is settled here
//! as in a page fault: a victim is killed and the access tried again, unless the victim is the caller itself.
//!
//! All of these may sleep.

use alloc::vec;
use alloc::vec::Vec;

use ::memory::{Fault, USER_END};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{AddressSpace, current_space, out_of_memory};
use crate::syscall::Errno;

/// Reads a value.
///
/// # Errors
/// EFAULT.
pub(crate) fn read<T: FromBytes + IntoBytes>(address: u64) -> Result<T, Errno> {
    let mut value = T::new_zeroed();
    read_bytes(address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes a value.
///
/// # Errors
/// EFAULT; part of it may be written.
pub(crate) fn write<T: IntoBytes + Immutable>(address: u64, value: &T) -> Result<(), Errno> {
    write_bytes(address, value.as_bytes())
}

/// Fills `bytes` from the program's memory.
///
/// # Errors
/// EFAULT; `bytes` may be partly filled.
pub(crate) fn read_bytes(address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    access(|space| space.read_user(address, bytes))
}

/// Writes `bytes` to the program's memory.
///
/// # Errors
/// EFAULT; what lies before the fault is written.
pub(crate) fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    access(|space| space.write_user(address, bytes))
}

/// Reads a string that ends with a zero byte, which is not part of the result.
///
/// # Errors
/// EFAULT; `too_long` if no end is found in the first `most` bytes (the zero byte included).
pub(crate) fn read_string(address: u64, most: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
    /// Most strings are shorter than this.
    const FIRST: usize = 256;
    let mut bytes = vec![0; FIRST.min(most)];
    loop {
        if let Some(length) = access(|space| space.read_user_string(address, &mut bytes))? {
            bytes.truncate(length);
            return Ok(bytes);
        }
        if bytes.len() == most {
            return Err(too_long);
        }
        bytes = vec![0; (bytes.len() * 4).min(most)];
    }
}

/// Checks that a range lies in user space, which is all that some calls look at before they do anything else.
///
/// # Errors
/// EFAULT.
pub(crate) fn check_range(address: u64, length: u64) -> Result<(), Errno> {
    match address.checked_add(length) {
        Some(end) if end <= USER_END => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// Tries an access until it succeeds, fails for good, or this program has been chosen to die.
fn access<R>(mut attempt: impl FnMut(&AddressSpace) -> Result<R, Fault>) -> Result<R, Errno> {
    let space = current_space().ok_or(Errno::EFAULT)?;
    loop {
        match attempt(&space) {
            Ok(result) => return Ok(result),
            Err(Fault::OutOfMemory) => out_of_memory::relieve().map_err(|_| Errno::EFAULT)?,
            Err(_) => return Err(Errno::EFAULT),
        }
    }
}
