//! Sending: to a process or to one thread.
//!
//! Sending may happen in a timer's interrupt, so it takes only locks that keep interrupts off and allocates
//! nothing for a standard signal.

use super::super::{ExitStatus, Process, Thread, current};
use super::action::Action;
use super::information::Information;
use super::set::{Signal, SignalSet};
use super::state::{SignalState, notify};
use crate::syscall::Errno;
use alloc::sync::Arc;

/// Sends to a process: any thread that does not block the signal may take it.
///
/// # Errors
/// EAGAIN if it is a real-time signal and too many are pending.
pub(crate) fn send_to_process(process: &Process, information: Information) -> Result<(), Errno> {
    let signal = information.signal;
    let mut signals = process.signals.lock();
    if !prepare(process, &mut signals, signal, None) {
        return Ok(());
    }
    signals.pending.push(information).map_err(|_| Errno::EAGAIN)?;
    wake_one_for(&signals, signal);
    drop(signals);
    process.arrivals().announce();
    Ok(())
}

/// Sends to one thread.
///
/// # Errors
/// As [`send_to_process`].
pub(crate) fn send_to_thread(thread: &Arc<Thread>, information: Information) -> Result<(), Errno> {
    let signal = information.signal;
    let process = thread.process();
    let mut signals = process.signals.lock();
    if !signals.threads.iter().any(|one| Arc::ptr_eq(one, thread)) {
        return Ok(());
    }
    if !prepare(process, &mut signals, signal, Some(thread)) {
        return Ok(());
    }
    thread.pending.lock().push(information).map_err(|_| Errno::EAGAIN)?;
    if !thread.blocked().contains(signal) {
        notify(thread);
    }
    drop(signals);
    process.arrivals().announce();
    Ok(())
}

/// The effects that sending has by itself, whether or not the signal is blocked: SIGCONT continues, stop
/// signals and SIGCONT cancel each other, SIGKILL ends the process. Returns whether the signal is to be
/// queued.
fn prepare(process: &Process, signals: &mut SignalState, signal: Signal, to: Option<&Thread>) -> bool {
    if signals.ending.is_some() || signals.threads.is_empty() {
        return false;
    }
    match signal {
        Signal::SIGKILL => {
            signals.begin_end(process, ExitStatus::Killed(signal));
            return false;
        }
        Signal::SIGCONT => resume(process, signals),
        _ if SignalSet::STOPPING.contains(signal) => signals.discard(SignalSet::of(Signal::SIGCONT)),
        _ => {}
    }
    !process.action(signal).ignores(signal) || is_held(signals, signal, to)
}

/// Whether an ignored signal is blocked or waited for: then it stays pending, because the program may want it
/// later.
fn is_held(signals: &SignalState, signal: Signal, to: Option<&Thread>) -> bool {
    match to {
        Some(thread) => thread.holds(signal),
        None => signals.threads.iter().all(|thread| thread.holds(signal)),
    }
}

fn resume(process: &Process, signals: &mut SignalState) {
    signals.discard(SignalSet::STOPPING);
    signals.stop_taken = false;
    if signals.stop.take().is_some() {
        signals.continued = signals.stop_reported;
        signals.stop_reported = false;
        process.changes.wake_all();
    }
}

/// Picks a thread for a signal that was sent to the process: the first thread if it wants it, else the first
/// that does. Also called for what a thread leaves behind when it blocks a signal or ends.
pub(in super::super) fn wake_one_for(signals: &SignalState, signal: Signal) {
    if let Some(thread) = signals.threads.iter().find(|thread| !thread.blocked().contains(signal)) {
        notify(thread);
    }
}

/// Sends a POSIX timer's signal. While one of the same timer is still pending no second one is queued; the
/// pending one's overrun count grows instead. Returns whether the signal is news: queued now, and not ignored.
pub(in super::super) fn expire_timer_signal(
    process: &Process,
    to: Option<&Arc<Thread>>,
    information: Information,
) -> bool {
    let pending = match to {
        Some(thread) => thread.pending.lock().add_overrun(&information),
        None => process.signals.lock().pending.add_overrun(&information),
    };
    if pending {
        return false;
    }
    // A full queue loses the expiry, as on Linux.
    let sent = match to {
        Some(thread) => send_to_thread(thread, information),
        None => send_to_process(process, information),
    };
    sent.is_ok() && !process.action(information.signal).ignores(information.signal)
}

/// Sends the current thread a signal of the kernel's own, such as SIGPIPE.
pub(crate) fn raise(signal: Signal) {
    // Standard signals always have room.
    let _ = send_to_thread(&current(), Information::from_kernel(signal));
}

/// Sets what a process does about a signal; returns what it did. Instances that wait are dropped if they
/// would now be ignored.
pub(crate) fn set_action(process: &Process, signal: Signal, action: Action) -> Action {
    let mut signals = process.signals.lock();
    let actions = process.actions();
    let before = {
        let mut actions = actions.lock();
        let before = actions.get(signal);
        actions.set(signal, action);
        before
    };
    if action.ignores(signal) {
        signals.discard(SignalSet::of(signal));
    }
    before
}
