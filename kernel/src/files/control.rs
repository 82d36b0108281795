//! Answers to `ioctl` requests that several kinds of files have in common.

use crate::memory::user;
use crate::syscall::Errno;
use linux_raw_sys::ioctl::FIONREAD;

/// Answers FIONREAD with the number of bytes that can be read; ENOTTY for any other request.
pub(crate) fn answer_available(request: u32, argument: u64, available: usize) -> Result<usize, Errno> {
    if request != FIONREAD {
        return Err(Errno::ENOTTY);
    }
    let available = i32::try_from(available).unwrap_or(i32::MAX);
    user::write(argument, &available)?;
    Ok(0)
}
