//! Waiting for a file, and what an interrupted wait returns.
//!
//! A signal ends every wait here. Transfers that have not moved a byte are run again after the handler if it
//! has SA_RESTART; waits with a deadline are not.

use super::file::Patience;
use crate::sync::{WaitQueue, Wake};
use crate::syscall::Errno;

/// Waits until `condition` yields something.
pub(crate) fn wait<R>(queue: &WaitQueue, condition: impl FnMut() -> Option<R>) -> Result<R, Errno> {
    queue.wait_interruptible(None, condition).map_err(|_| Errno::ERESTARTSYS)
}

/// Waits until `condition` yields something or `deadline` (nanoseconds since boot) has passed: None then.
pub(crate) fn wait_until<R>(
    queue: &WaitQueue,
    deadline: Option<u64>,
    condition: impl FnMut() -> Option<R>,
) -> Result<Option<R>, Errno> {
    match queue.wait_interruptible(deadline, condition) {
        Ok(result) => Ok(Some(result)),
        Err(Wake::TimedOut) => Ok(None),
        Err(Wake::Interrupted) => Err(Errno::ERESTARTNOHAND),
    }
}

/// Tries at once, then waits for its turn or fails with EAGAIN.
pub(crate) fn attempt<R>(
    queue: &WaitQueue,
    patience: Patience,
    attempt: impl FnMut() -> Option<R>,
) -> Result<R, Errno> {
    attempt_until(queue, patience, None, attempt)
}

/// As [`attempt`], but fails with ETIMEDOUT when `deadline` (nanoseconds since boot) has passed.
pub(crate) fn attempt_until<R>(
    queue: &WaitQueue,
    patience: Patience,
    deadline: Option<u64>,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, Errno> {
    match (attempt(), patience) {
        (Some(result), _) => Ok(result),
        (None, Patience::Refuse) => Err(Errno::EAGAIN),
        (None, Patience::Wait) => queue.wait_interruptible(deadline, attempt).map_err(|wake| match wake {
            Wake::TimedOut => Errno::ETIMEDOUT,
            Wake::Interrupted => Errno::ERESTARTSYS,
        }),
    }
}
