//! Calls that go on where they were interrupted.
//!
//! A relative sleep that a signal interrupts, without a handler having run, must not start over with its full
//! time. Such a call leaves a [`Continuation`] with its thread and returns ERESTART_RESTARTBLOCK; signal
//! delivery then makes user mode call `restart_syscall`, which runs it. A handler that ran instead turns the
//! error into EINTR, and the continuation is forgotten by the next one.

use crate::syscall::Errno;
use alloc::boxed::Box;

/// The rest of an interrupted call.
pub(crate) type Continuation = Box<dyn FnOnce() -> Result<usize, Errno> + Send>;

/// Leaves `rest` for `restart_syscall` and gives the error to return.
pub(crate) fn interrupted(rest: impl FnOnce() -> Result<usize, Errno> + Send + 'static) -> Errno {
    *super::current().continuation.lock() = Some(Box::new(rest));
    Errno::ERESTART_RESTARTBLOCK
}

/// The call `restart_syscall` itself.
///
/// # Errors
/// EINTR if nothing was interrupted; what the continued call returns.
pub(crate) fn resume() -> Result<usize, Errno> {
    let rest = super::current().continuation.lock().take();
    rest.map_or(Err(Errno::EINTR), |rest| rest())
}
