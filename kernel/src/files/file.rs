//! What can be done with an open file, whatever it is.
//!
//! Each kind of file implements what makes sense for it; the rest answers with the error that Linux gives.
//! Whether the opening allows reading or writing at all has been checked before a method is called.

use super::{Destination, Observers, Readiness, Source};
use crate::memory::Backing;
use crate::syscall::Errno;
use alloc::sync::Arc;
use core::any::Any;

/// Whether an operation that cannot go on waits for its turn or fails with EAGAIN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Wait,
    Refuse,
}

/// What a position in the file means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// Bytes at offsets: reading and writing move on from the position.
    Offsets,
    /// Seeking is accepted and changes nothing, as with `/dev/null`.
    Ignored,
    /// A stream: ESPIPE.
    None,
}

pub(crate) trait File: Any + Send + Sync {
    fn positions(&self) -> Positions {
        Positions::None
    }

    /// Reads at `position`, which moves on by what was read.
    fn read(&self, _position: &mut u64, _to: &mut dyn Destination, _patience: Patience) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// Writes at `position`, or at the end of the file if `append`; the position is behind the written bytes
    /// then.
    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        _from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// What can be done at once. Files that never make anybody wait are always ready.
    fn readiness(&self) -> Readiness {
        Readiness::READABLE | Readiness::WRITABLE
    }

    /// What `poll` finds, for an opening that waits or does not.
    fn polled(&self, _patience: Patience) -> Readiness {
        self.readiness()
    }

    /// Who looks at this file: one list for each thing it waits for. A file without a list can be polled but
    /// not be added to an epoll instance.
    fn observers(&self) -> [Option<&Observers>; 2] {
        [None, None]
    }

    /// `ioctl`, after the requests that mean the same for every file.
    fn control(&self, _request: u32, _argument: u64) -> Result<usize, Errno> {
        Err(Errno::ENOTTY)
    }

    /// Whether `mmap` may make it code: not on a filesystem without programs, as `/proc` is.
    fn may_be_executed(&self) -> bool {
        true
    }

    /// The pages that `mmap` shows. Of a shared mapping it is said whether the program may store to it, now or after an `mprotect`.
    fn backing(&self, _may_be_stored_to: bool) -> Result<Arc<Backing>, Errno> {
        Err(Errno::ENODEV)
    }
}
