//! Files of programs that run.
//!
//! The pages of a running program are the pages of its file, so the file must not change meanwhile: opening it for
//! writing is ETXTBSY, and so is running a file that somebody has open for writing.

use super::Entry;
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::sync::Arc;

/// Who uses a file's content in a way that excludes others. Never both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// This many programs run from it.
    Programs(u32),
    /// This many openings may write it.
    Writers(u32),
}

/// The uses of one file.
pub(crate) struct Uses(SpinLock<Use>);

impl Uses {
    pub(super) const fn new() -> Self {
        Self(SpinLock::new(Use::Free))
    }

    /// Counts an opening for writing; ETXTBSY while a program runs from the file.
    pub(super) fn add_writer(&self) -> Result<(), Errno> {
        let mut state = self.0.lock();
        *state = match *state {
            Use::Free => Use::Writers(1),
            Use::Writers(count) => Use::Writers(count + 1),
            Use::Programs(_) => return Err(Errno::ETXTBSY),
        };
        Ok(())
    }

    pub(super) fn remove_writer(&self) {
        let mut state = self.0.lock();
        *state = match *state {
            Use::Writers(count) if count > 1 => Use::Writers(count - 1),
            _ => Use::Free,
        };
    }

    /// ETXTBSY while a program runs from the file.
    pub(crate) fn check_idle(&self) -> Result<(), Errno> {
        if matches!(*self.0.lock(), Use::Programs(_)) { Err(Errno::ETXTBSY) } else { Ok(()) }
    }

    fn add_program(&self) -> Result<(), Errno> {
        let mut state = self.0.lock();
        *state = match *state {
            Use::Free => Use::Programs(1),
            Use::Programs(count) => Use::Programs(count + 1),
            Use::Writers(_) => return Err(Errno::ETXTBSY),
        };
        Ok(())
    }

    fn remove_program(&self) {
        let mut state = self.0.lock();
        *state = match *state {
            Use::Programs(count) if count > 1 => Use::Programs(count - 1),
            _ => Use::Free,
        };
    }
}

/// A program's hold on its file, for as long as the program may run.
pub(crate) struct Running(Arc<Entry>);

impl Running {
    /// Takes hold of a program's file.
    ///
    /// # Errors
    /// ETXTBSY if somebody may write it, EACCES if it is no regular file.
    pub(crate) fn new(entry: &Arc<Entry>) -> Result<Arc<Self>, Errno> {
        entry.inode().regular().map_err(|_| Errno::EACCES)?.uses().add_program()?;
        Ok(Arc::new(Self(entry.clone())))
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(content) = self.0.inode().regular() {
            content.uses().remove_program();
        }
    }
}
