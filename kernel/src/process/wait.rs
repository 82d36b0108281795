//! Waiting for children: `wait4` and `waitid`.

use super::family::{Change, FAMILY, Family, Member};
use super::signal::Signal;
use super::{ExitStatus, Process, Usage, current};
use crate::sync::Wake;
use crate::syscall::Errno;
use alloc::sync::Arc;

bitflags::bitflags! {
    /// Options of both calls, with Linux's values.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct WaitOptions: u32 {
        /// Do not wait.
        const NO_HANG = 0x1;
        /// Report children that stopped.
        const STOPPED = 0x2;
        /// Report children that ended (`waitid`; `wait4` always does).
        const EXITED = 0x4;
        /// Report children that were continued.
        const CONTINUED = 0x8;
        /// Leave the child as it is, to be waited for again.
        const NO_WAIT = 0x0100_0000;
        /// Only children of this thread. All threads of a process share their children here.
        const NO_THREAD = 0x2000_0000;
        /// Children of either kind.
        const ALL = 0x4000_0000;
        /// Only children whose end is announced by something else than SIGCHLD.
        const CLONE = 0x8000_0000;
    }
}

/// Which children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// All of them.
    Any,
    /// This one.
    Process(u32),
    /// Those in this group.
    Group(u32),
}

/// What happened to the child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// It ended.
    Ended(ExitStatus),
    /// It was stopped by this signal.
    Stopped(Signal),
    /// It runs again.
    Continued,
}

/// One reported child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// The child.
    pub(crate) process: u32,
    /// Its real user id.
    pub(crate) user: u32,
    /// What happened.
    pub(crate) event: Event,
    /// What it used, with its own children.
    pub(crate) usage: Usage,
}

enum Search {
    Found(Report),
    NothingYet,
    NoChildren,
}

/// Waits for a change of a child. `None` if nothing happened yet and NO_HANG says not to wait.
///
/// # Errors
/// ECHILD if there is no such child; ERESTARTSYS when interrupted.
pub(crate) fn wait(which: Which, options: WaitOptions) -> Result<Option<Report>, Errno> {
    let process = current().process().clone();
    if options.contains(WaitOptions::NO_HANG) {
        return match search(&process, which, options) {
            Search::Found(report) => Ok(Some(report)),
            Search::NothingYet => Ok(None),
            Search::NoChildren => Err(Errno::ECHILD),
        };
    }
    let outcome = process.child_events.wait_interruptible(None, || match search(&process, which, options) {
        Search::Found(report) => Some(Ok(Some(report))),
        Search::NothingYet => None,
        Search::NoChildren => Some(Err(Errno::ECHILD)),
    });
    match outcome {
        Ok(result) => result,
        Err(Wake::Interrupted | Wake::TimedOut) => Err(Errno::ERESTARTSYS),
    }
}

fn search(process: &Arc<Process>, which: Which, options: WaitOptions) -> Search {
    let mut family = FAMILY.lock();
    let Some(children) = family.member(process.id()).map(|member| member.children.clone()) else {
        return Search::NoChildren;
    };
    let mut any = false;
    for id in children {
        let Some(child) = family.member(id) else { continue };
        if !matches(child, which, options) {
            continue;
        }
        any = true;
        if let Some(event) = event_of(child, options) {
            let (report, removed) = take(&mut family, process, id, event, options);
            drop(family);
            // The last reference to a process may go with it: not under the lock.
            drop(removed);
            return Search::Found(report);
        }
    }
    if any { Search::NothingYet } else { Search::NoChildren }
}

fn matches(child: &Member, which: Which, options: WaitOptions) -> bool {
    let chosen = match which {
        Which::Any => true,
        Which::Process(id) => child.process.id() == id,
        Which::Group(group) => child.group == group,
    };
    let ordinary = child.exit_signal == Some(Signal::SIGCHLD);
    let wanted_kind = options.contains(WaitOptions::ALL) || ordinary != options.contains(WaitOptions::CLONE);
    chosen && wanted_kind
}

fn event_of(child: &Member, options: WaitOptions) -> Option<Event> {
    if let Some(ended) = child.ended {
        return options.contains(WaitOptions::EXITED).then_some(Event::Ended(ended.status));
    }
    match child.change? {
        Change::Stopped(signal) if options.contains(WaitOptions::STOPPED) => Some(Event::Stopped(signal)),
        Change::Continued if options.contains(WaitOptions::CONTINUED) => Some(Event::Continued),
        _ => None,
    }
}

fn take(
    family: &mut Family,
    parent: &Process,
    id: u32,
    event: Event,
    options: WaitOptions,
) -> (Report, Option<Member>) {
    let mut usage = Usage::default();
    let mut user = 0;
    if let Some(child) = family.member_mut(id) {
        user = child.process.credentials().user.real;
        usage = child.ended.map_or_else(|| child.process.usage(), |ended| ended.usage);
        usage.add(&child.process.child_usage());
        if !options.contains(WaitOptions::NO_WAIT) && child.ended.is_none() {
            child.change = None;
        }
    }
    let ended = matches!(event, Event::Ended(_)) && !options.contains(WaitOptions::NO_WAIT);
    let removed = if ended { family.remove(id) } else { None };
    if ended {
        parent.add_child_usage(&usage);
    }
    (Report { process: id, user, event, usage }, removed)
}
