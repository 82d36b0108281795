//! `userfaultfd`: makes the file by which a program resolves page faults.

use super::{Arguments, Errno, path};
use crate::files::{may_watch_the_kernel, userfault};
use linux_raw_sys::general::UFFD_USER_MODE_ONLY;

/// `userfaultfd(flags)`. Who may not hold up the kernel's own accesses must say that it will not.
pub(super) fn userfaultfd(arguments: &Arguments) -> Result<usize, Errno> {
    let flags = arguments[0] as u32;
    if flags & UFFD_USER_MODE_ONLY == 0 && !may_watch_the_kernel() {
        return Err(Errno::EPERM);
    }
    let (description, close_on_exec) = userfault(flags)?;
    path::install(description, close_on_exec)
}
