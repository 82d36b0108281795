//! Processes: threads, their families, programs, signals, futexes, alarms.
//!
//! | noun | is | file |
//! |---|---|---|
//! | `Process` | a group of threads with one id | `thread_group` |
//! | `Thread` | what one thread is to user mode | `thread` |
//! | `UserSpace` | an address space in use by processes | `user_space` |
//! | family | who is whose child, groups, sessions, zombies | `family` |
//! | `Image` | what an ELF file asks for | `image`, loaded by `loader` for `execute` |
//! | signal | from the sender to the handler's frame | `signal` |
//! | sequence | user code that starts again when it was interrupted | `sequence` |
//! | `Alarm` | a timer that ends in a signal | `alarm`, `timers` |
//!
//! The kernel itself plays process 1: it starts the main program, adopts and reaps orphans, and when the main
//! program ends it reports and powers off, whatever else still runs.

mod alarm;
mod clone;
mod core_file;
pub(crate) mod credentials;
mod exception;
mod execute;
mod end;
mod exit;
mod family;
pub(crate) mod futex;
mod groups;
mod image;
mod initial_stack;
pub(crate) mod limits;
mod loader;
mod main_program;
pub(crate) mod random;
pub(crate) mod restart;
pub(crate) mod robust_list;
mod script;
pub(crate) mod sequence;
pub(crate) mod signal;
mod status;
mod strings;
mod thread;
mod thread_group;
mod timers;
mod user_space;
mod wait;

use crate::arch::TrapFrame;
use crate::task;
use alloc::sync::Arc;

pub(crate) use alarm::{Alarm, AlarmClock, Notice, Setting};
pub(crate) use clone::{CloneFlags, Request as CloneRequest, clone, unshare};
pub(crate) use exception::{exception, fault};
pub(crate) use execute::{caller_of, execute};
pub(crate) use exit::{end_process, end_thread};
pub(crate) use family::{
    ID_LIMIT, REAPER, Relations, counts, find_process, find_thread, group_members, process_ids, relations,
};
pub(crate) use groups::{new_session, set_group};
pub(crate) use image::USER_END;
pub(crate) use initial_stack::{Arguments, ROOM_MAX as ARGUMENT_ROOM_MAX, STRING_MAX};
use main_program::main_program_ended;
pub(crate) use main_program::start_init;
pub(crate) use status::{ExitStatus, Usage};
pub(crate) use strings::Strings;
pub(crate) use thread::{DEFAULT_TIMER_SLACK, FaultRecord, NAME_SIZE, Thread};
pub(crate) use thread_group::{Process, time_of_all};
pub(crate) use timers::{Interval, PosixTimer};
pub(crate) use user_space::UserSpace;
pub(crate) use wait::{Event, Report, WaitOptions, Which, wait};

/// Nanoseconds of one tick of user mode's clock (`sysconf(_SC_CLK_TCK)` is 100).
pub(crate) const NANOSECONDS_PER_TICK: u64 = 10_000_000;

/// The running thread.
///
/// # Panics
/// In a kernel task: nothing there may act for a program.
pub(crate) fn current() -> Arc<Thread> {
    task::current().thread().expect("a program's thread is running").clone()
}

/// Does what is due before user mode; called by the entry code when the task's work flags say so.
pub(crate) fn return_to_user(frame: &mut TrapFrame) {
    signal::deliver(frame, None);
}
