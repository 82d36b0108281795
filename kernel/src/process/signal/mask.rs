//! Blocking signals, waiting for them, and the alternate stack.

use super::super::current;
use super::information::Information;
use super::send::wake_one_for;
use super::set::SignalSet;
use super::state::notify;
use crate::sync::{WaitQueue, Wake};
use crate::syscall::Errno;
use crate::{task, time};
use core::sync::atomic::Ordering;

/// The alternate stack of `sigaltstack`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AlternateStack {
    /// Lowest address.
    pub(crate) base: u64,
    /// Bytes; 0 when there is none.
    pub(crate) size: u64,
    /// SS_AUTODISARM: taken down while a handler runs on it.
    pub(crate) disarm: bool,
}

impl AlternateStack {
    /// Whether `pointer` is on it.
    pub(crate) fn holds(&self, pointer: u64) -> bool {
        // With SS_AUTODISARM the stack is not set while in use, so one that is set is not in use.
        !self.disarm && self.size != 0 && pointer > self.base && pointer - self.base <= self.size
    }
}

/// Sets the current thread's mask and makes sure that nothing deliverable is left lying: what it may take now
/// it will take on its way to user mode, what it no longer takes is offered to another thread.
pub(crate) fn set_mask(mask: SignalSet) {
    let thread = current();
    let newly_blocked = mask & !thread.blocked();
    thread.store_blocked(mask);
    let signals = thread.process().signals.lock();
    let mut orphaned = signals.pending.set() & newly_blocked;
    while let Some(signal) = orphaned.next() {
        orphaned.remove(signal);
        wake_one_for(&signals, signal);
    }
    if signals.concerns(&thread) {
        notify(&thread);
    }
}

/// Signals that are pending for the current thread or its process.
pub(crate) fn pending() -> SignalSet {
    let thread = current();
    let shared = thread.process().signals.lock().pending.set();
    let own = thread.pending.lock().set();
    own | shared
}

/// Those of them that it blocks.
pub(crate) fn pending_and_blocked() -> SignalSet {
    pending() & current().blocked()
}

/// Takes a pending signal of `wanted` from the current thread or its process, if there is one.
pub(crate) fn take_pending(wanted: SignalSet) -> Option<Information> {
    let thread = current();
    let mut signals = thread.process().signals.lock();
    let own = thread.pending.lock().take(wanted);
    let mut taken = own.or_else(|| signals.pending.take(wanted));
    drop(signals);
    if let Some(information) = &mut taken {
        thread.process().timers().taken(information);
    }
    taken
}

/// Runs `call` under another mask, as `ppoll`, `pselect6` and `epoll_pwait` do. If a signal interrupts it,
/// the old mask comes back only after that signal was delivered, so that its handler runs even if the old
/// mask blocks it.
///
/// # Errors
/// What `call` returns.
pub(crate) fn with_mask(
    mask: Option<SignalSet>,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let Some(mask) = mask else { return call() };
    let thread = current();
    let old = thread.blocked();
    set_mask(mask);
    let result = call();
    match result {
        Err(Errno::EINTR | Errno::ERESTARTSYS | Errno::ERESTARTNOHAND | Errno::ERESTART_RESTARTBLOCK) => {
            *thread.saved_mask.lock() = Some(old);
            // Delivery puts the old mask back even if there turns out to be nothing to deliver.
            task::current().interrupt();
        }
        _ => set_mask(old),
    }
    result
}

/// `rt_sigsuspend`: waits under `mask` until a signal is delivered.
///
/// # Errors
/// Always: EINTR once a handler has run.
pub(crate) fn suspend(mask: SignalSet) -> Result<usize, Errno> {
    with_mask(Some(mask), || {
        let nothing = WaitQueue::new();
        let _ = nothing.wait_interruptible::<()>(None, || None);
        Err(Errno::ERESTARTNOHAND)
    })
}

/// `rt_sigtimedwait`: takes a pending signal of `wanted`, waiting until `deadline` (nanoseconds since boot)
/// if there is none.
///
/// # Errors
/// EAGAIN when time is up; EINTR when another signal came.
pub(crate) fn wait_for(wanted: SignalSet, deadline: Option<u64>) -> Result<Information, Errno> {
    let thread = current();
    let wanted = wanted & !SignalSet::UNBLOCKABLE;
    let take = || take_pending(wanted);
    if let Some(information) = take() {
        return Ok(information);
    }
    if deadline.is_some_and(|deadline| deadline <= time::now()) {
        return Err(Errno::EAGAIN);
    }
    // While it waits the signals count as not blocked, so that senders choose and wake this thread. They are
    // taken here all the same, because delivery does not run before the mask is back.
    let old = thread.blocked();
    thread.awaited.store(wanted.bits(), Ordering::SeqCst);
    set_mask(old & !wanted);
    let nothing = WaitQueue::new();
    let woken = nothing.wait_interruptible(deadline, take);
    let result = match woken {
        Ok(information) => Ok(information),
        Err(wake) => take().ok_or(if wake == Wake::TimedOut { Errno::EAGAIN } else { Errno::EINTR }),
    };
    thread.awaited.store(0, Ordering::SeqCst);
    set_mask(old);
    result
}
