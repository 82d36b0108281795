//! The end of a thread, and of a process with its last thread.
//!
//! Order matters to those who wait. A thread first says goodbye in user memory (robust futexes, the word that
//! `pthread_join` waits on), because that needs its address space. Then it leaves the list of threads. The
//! last to leave gives back memory and files before the parent hears of the end, so that a parent that has
//! waited finds them free.

use super::family::{self, Ended, FAMILY, REAPER};
use super::futex;
use super::signal::{
    ActionFlags, Disposition, Information, Origin, Signal, code, report_if_stopped, send_to_process,
};
use super::{ExitStatus, NANOSECONDS_PER_TICK, Process, Thread, Usage, current, robust_list};
use crate::memory::user;
use crate::sync::Once;
use crate::task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The main program's process id; when it ends the machine reports and stops.
pub(super) static MAIN: Once<u32> = Once::new();

/// Ends the whole process with `status`, starting with the current thread.
pub(crate) fn end_process(status: ExitStatus) -> ! {
    let status = {
        let thread = current();
        let process = thread.process();
        process.signals.lock().begin_end(process, status)
    };
    end_thread(status)
}

/// Ends the current thread. `status` becomes that of the process if this is its last thread and `exit_group`
/// has said no other.
pub(crate) fn end_thread(status: ExitStatus) -> ! {
    // The kernel's work, whatever the thread was doing when its end came.
    task::measure_from_here();
    let thread = current();
    thread.exiting.store(true, Ordering::Relaxed);
    say_goodbye(&thread);
    let process = thread.process().clone();
    let last = leave(&thread, &process);
    thread.set_files(None);
    thread.set_context(None);
    if last {
        end_last(&thread, &process, status);
    } else {
        process.changes.wake_all();
        report_if_stopped(&process);
    }
    drop(process);
    drop(thread);
    task::exit_current()
}

/// What the thread owes to others in user memory. Failures are the program's own: it gave the addresses.
fn say_goodbye(thread: &Thread) {
    robust_list::release(thread);
    let word = thread.clear_at_exit.swap(0, Ordering::Relaxed);
    if word != 0 && user::write(word, &0u32).is_ok() {
        let _ = futex::wake_address(word);
    }
    release_vfork(thread);
}

/// Lets the parent of a vfork child go on, once the child uses its memory no more.
pub(super) fn release_vfork(thread: &Thread) {
    let release = thread.vfork.lock().take();
    if let Some(release) = release {
        release.complete();
    }
}

/// Takes the thread out of its process. Returns whether it was the last.
fn leave(thread: &Arc<Thread>, process: &Process) -> bool {
    let usage = thread.usage();
    let gone = FAMILY.lock().remove_thread(thread.id());
    let (last, listed) = {
        let mut signals = process.signals.lock();
        let at = signals.threads.iter().position(|one| Arc::ptr_eq(one, thread));
        let listed = at.map(|at| signals.threads.swap_remove(at));
        // Signals of the process that this thread was chosen for are offered to another.
        let mut left = signals.pending.set();
        while let Some(signal) = left.next() {
            left.remove(signal);
            super::signal::wake_one_for(&signals, signal);
        }
        (signals.threads.is_empty(), listed)
    };
    process.add_past_usage(&usage);
    drop((gone, listed));
    last
}

fn end_last(thread: &Thread, process: &Arc<Process>, status: ExitStatus) {
    process.timers().clear();
    crate::files::lock::release_all(process.id());
    let peak_pages = process.usage().peak_pages;
    let until_here = thread.usage();
    drop(task::current().leave_space());
    drop(process.set_memory(None));
    // Giving back a large memory takes long, and those who wait for the process want to know.
    process.add_past_usage(&Usage { time: thread.usage().time.since(until_here.time), ..Usage::default() });
    let usage = Usage { peak_pages, ..process.usage() };
    let status = process.signals.lock().ending.unwrap_or(status);
    hang_up_orphaned_groups(process.id());
    let orphans = FAMILY.lock().disown_children(process.id());
    settle_orphans(&orphans);
    bury(process, status, usage);
    if MAIN.get() == Some(&process.id()) {
        super::main_program_ended(status);
    }
}

/// Children that have ended and now belong to the kernel are reaped; those that asked for it are told of
/// their parent's death.
fn settle_orphans(orphans: &[u32]) {
    let mut removed = Vec::new();
    let mut told = Vec::new();
    {
        let mut family = FAMILY.lock();
        for &id in orphans {
            let Some(member) = family.member(id) else { continue };
            if member.ended.is_some() && member.parent == REAPER {
                removed.extend(family.remove(id));
            } else if member.ended.is_none() {
                told.push(member.process.clone());
            } else if let Some(heir) = family.member(member.parent) {
                heir.process.child_events.wake_all();
            }
        }
    }
    drop(removed);
    for child in told {
        let number = child.parent_death_signal.load(Ordering::Relaxed);
        if let Some(signal) = Signal::new(u64::from(number)) {
            let _ = send_to_process(&child, Information::from_kernel(signal));
        }
    }
}

/// Turns the process into a zombie and tells its parent, or removes it at once if nobody wants to know.
fn bury(process: &Arc<Process>, status: ExitStatus, usage: Usage) {
    let removed = {
        let mut family = FAMILY.lock();
        let Some(member) = family.member_mut(process.id()) else { return };
        member.ended = Some(Ended { status, usage });
        let (parent, exit_signal) = (member.parent, member.exit_signal);
        let parent = family.member(parent).map(|member| member.process.clone());
        match parent {
            None => family.remove(process.id()),
            Some(parent) => {
                let unwanted = exit_signal == Some(Signal::SIGCHLD) && leaves_no_zombie(&parent);
                if let Some(signal) = exit_signal {
                    let _ = send_to_process(&parent, death_notice(process, signal, status, &usage));
                }
                let removed = if unwanted { family.remove(process.id()) } else { None };
                parent.child_events.wake_all();
                removed
            }
        }
    };
    process.end().announce();
    drop(removed);
}

fn leaves_no_zombie(parent: &Process) -> bool {
    let action = parent.action(Signal::SIGCHLD);
    action.disposition == Disposition::Ignore || action.flags.contains(ActionFlags::NO_CHILD_WAIT)
}

fn death_notice(process: &Process, signal: Signal, status: ExitStatus, usage: &Usage) -> Information {
    let (code, value) = match status {
        ExitStatus::Exited(value) => (code::CLD_EXITED, i32::from(value)),
        ExitStatus::Killed(by) => (code::CLD_KILLED, i32::from(by.number())),
        ExitStatus::Dumped(by) => (code::CLD_DUMPED, i32::from(by.number())),
    };
    let origin = Origin::Child {
        process: process.id(),
        user: process.credentials().user.real,
        status: value,
        user_ticks: usage.time.user / NANOSECONDS_PER_TICK,
        system_ticks: usage.time.system / NANOSECONDS_PER_TICK,
    };
    Information { signal, error: 0, code, origin }
}

/// A stopped group that nobody could continue any more gets SIGHUP and SIGCONT, as POSIX wants it.
fn hang_up_orphaned_groups(ending: u32) {
    let newly_orphaned: Vec<u32> = {
        let family = FAMILY.lock();
        let Some(member) = family.member(ending) else { return };
        let mut groups: Vec<u32> =
            member.children.iter().filter_map(|&id| family.member(id)).map(|child| child.group).collect();
        groups.push(member.group);
        groups.sort_unstable();
        groups.dedup();
        let own = member.group;
        groups.retain(|&group| {
            let without = !family.members().any(|one| {
                one.group == group
                    && one.ended.is_none()
                    && one.process.id() != ending
                    && one.parent != ending
                    && family.has_outside_parent(one)
            });
            without && (group != own || family.is_orphaned(group, Some(ending)))
        });
        groups
    };
    for group in newly_orphaned {
        let members = family::group_members(group);
        if members.iter().any(|process| process.id() != ending && process.signals.lock().stop.is_some()) {
            for signal in [Signal::SIGHUP, Signal::SIGCONT] {
                for process in members.iter().filter(|process| process.id() != ending) {
                    let _ = send_to_process(process, Information::from_kernel(signal));
                }
            }
        }
    }
}
