//! System calls: from the number in `rax` to the function that does it.
//!
//! One table (`table`), one file per family of calls. A call takes its six raw arguments, checks every one of them,
//! and returns a value or an [`Errno`].

mod errno;

pub use errno::Errno;

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::TrapFrame;

/// Calls whose number nobody serves.
pub(crate) static UNKNOWN: AtomicU64 = AtomicU64::new(0);

/// A system call: the number and arguments are in the frame, the result goes into `rax`.
pub(crate) fn dispatch(frame: &mut TrapFrame) {
    UNKNOWN.fetch_add(1, Ordering::Relaxed);
    frame.rax = (-38_i64) as u64;
}
