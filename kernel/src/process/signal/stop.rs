//! Stopping and continuing a process, and telling its parent.
//!
//! A stop is complete when every thread waits in [`wait_until_continued`]; the last one to arrive (or to end
//! on its way) reports it. A continued process is reported by the first of its threads that runs again.

use super::super::family::{Change, FAMILY};
use super::super::signal::{ActionFlags, Information, Origin, code};
use super::super::{Process, Thread};
use super::send::send_to_process;
use super::set::Signal;

/// Waits until the process is continued or ends.
pub(super) fn wait_until_continued(thread: &Thread) {
    let process = thread.process();
    process.signals.lock().waiting += 1;
    report_if_stopped(process);
    process.changes.wait(|| {
        let signals = process.signals.lock();
        let leave = signals.stop.is_none()
            || signals.ending.is_some()
            || signals.executing.is_some_and(|id| id != thread.id());
        leave.then_some(())
    });
    process.signals.lock().waiting -= 1;
}

/// Reports the stop to the parent if all threads have come to rest.
pub(in super::super) fn report_if_stopped(process: &Process) {
    let stopped_by = {
        let mut signals = process.signals.lock();
        let complete = signals.waiting == signals.threads.len() && !signals.threads.is_empty();
        if !complete || signals.stop_reported || signals.ending.is_some() {
            return;
        }
        let Some(signal) = signals.stop else { return };
        signals.stop_reported = true;
        signal
    };
    report(process, Change::Stopped(stopped_by), code::CLD_STOPPED, stopped_by);
}

/// Tells the parent that the process runs again.
pub(super) fn report_continued(process: &Process) {
    report(process, Change::Continued, code::CLD_CONTINUED, Signal::SIGCONT);
}

fn report(process: &Process, change: Change, code: i32, status: Signal) {
    let parent = {
        let mut family = FAMILY.lock();
        let Some(member) = family.member_mut(process.id()) else { return };
        member.change = Some(change);
        let parent = member.parent;
        family.member(parent).map(|member| member.process.clone())
    };
    let Some(parent) = parent else { return };
    let usage = process.usage();
    let action = parent.action(Signal::SIGCHLD);
    if !action.flags.contains(ActionFlags::NO_CHILD_STOP) {
        let origin = Origin::Child {
            process: process.id(),
            user: process.credentials().user.real,
            status: i32::from(status.number()),
            user_ticks: usage.time.user / super::super::NANOSECONDS_PER_TICK,
            system_ticks: usage.time.system / super::super::NANOSECONDS_PER_TICK,
        };
        let information = Information { signal: Signal::SIGCHLD, error: 0, code, origin };
        // SIGCHLD does not queue, so there is always room.
        let _ = send_to_process(&parent, information);
    }
    parent.child_events.wake_all();
}

/// Whether a stop signal may stop the process: SIGSTOP always, those of the terminal only if somebody is left
/// to continue it.
pub(super) fn may_stop(process: &Process, signal: Signal) -> bool {
    if signal == Signal::SIGSTOP {
        return true;
    }
    let family = FAMILY.lock();
    let group = family.member(process.id()).map(|member| member.group);
    group.is_some_and(|group| !family.is_orphaned(group, None))
}
