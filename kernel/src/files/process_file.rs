//! Processes as files: what `pidfd_open` makes, and `clone` with CLONE_PIDFD.
//!
//! A file of this kind means one process for ever: when that is gone, it means nothing, and never a later one that bears the same id. It
//! can be polled, and is ready when the last thread has ended, whether or not anybody has waited for it.

use super::Description;
use super::file::File;
use super::filesystem::ANONYMOUS;
use super::open::anonymous;
use super::readiness::{Observers, Readiness};
use crate::process::{Process, find_process};
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;

/// The file.
pub(crate) struct ProcessFile(Arc<Process>);

impl ProcessFile {
    /// Opens a process; `flags` are those of `open` that it keeps.
    pub(crate) fn open(process: Arc<Process>, flags: u32) -> Arc<Description> {
        anonymous(&ANONYMOUS, b"anon_inode:[pidfd]", Box::new(Self(process)), abi::O_RDWR | flags)
    }

    /// The id that it has, or had.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The process, ended or not.
    ///
    /// # Errors
    /// ESRCH once somebody has waited for its end.
    pub(crate) fn process(&self) -> Result<Arc<Process>, Errno> {
        find_process(self.0.id()).filter(|found| Arc::ptr_eq(found, &self.0)).ok_or(Errno::ESRCH)
    }
}

impl File for ProcessFile {
    fn readiness(&self) -> Readiness {
        if self.0.end().has_come() { Readiness::READABLE } else { Readiness::empty() }
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(self.0.end().observers()), None]
    }
}
