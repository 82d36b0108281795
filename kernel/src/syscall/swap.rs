//! `swapon` and `swapoff`.

use super::path::{read_path, walk};
use super::{Arguments, Errno};
use crate::files::SwapFile;
use crate::memory::swap;
use crate::process::credentials::CAP_SYS_ADMIN;
use crate::process::current;

/// Flags of `swapon`: a priority, whether it is given, and how freed slots are told to the disk (which they are not).
const PRIORITY: u32 = 0x7fff;
const PREFER: u32 = 0x8000;
const DISCARD: u32 = 0x7_0000;

/// `swapon(path, flags)`.
pub(super) fn swapon(&[path, flags, ..]: &Arguments) -> Result<usize, Errno> {
    let flags = flags as u32;
    if flags & !(PRIORITY | PREFER | DISCARD) != 0 {
        return Err(Errno::EINVAL);
    }
    let priority = (flags & PREFER != 0).then_some((flags & PRIORITY) as i32);
    check_may()?;
    swap::check_count()?;
    swap::begin(file(path)?, priority).map(|()| 0)
}

/// `swapoff(path)`.
pub(super) fn swapoff(&[path, ..]: &Arguments) -> Result<usize, Errno> {
    check_may()?;
    swap::end(&file(path)?).map(|()| 0)
}

fn check_may() -> Result<(), Errno> {
    if current().process().credentials().has(CAP_SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
}

/// The disk at a path. EINVAL if something else is there: files live in memory.
fn file(path: u64) -> Result<SwapFile, Errno> {
    let entry = walk()?.find(&read_path(path)?)?;
    SwapFile::of(entry.inode())
}
