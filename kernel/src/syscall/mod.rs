//! System calls: from the number in `rax` to the function that does it.
//!
//! One table (`table`), one file per family of calls. A call takes its six raw arguments, checks every one of
//! them, and returns a value or an [`Errno`]. Numbers without a function get ENOSYS and are counted, so that
//! the report can say what a program lacked.
//!
//! A call that a signal interrupts returns one of the restart codes of `errno`. Only then does the way out
//! differ: what becomes of the call depends on the handler that runs, if one does, and that is for signal
//! delivery to decide.

mod attributes;
mod barrier;
mod control_message;
mod descriptor;
mod directory;
mod epoll;
mod errno;
mod file;
mod futex;
mod identity;
mod limit;
mod memory;
mod message;
mod message_queue;
mod path;
mod pipe;
mod poll;
mod process;
mod process_descriptor;
mod schedule;
mod sequence;
mod shared_memory;
mod signal;
mod socket;
mod socket_option;
mod status;
mod swap;
mod system;
mod table;
mod time;
mod timer;
mod transfer;
mod unknown;
mod userfault;

use crate::arch::TrapFrame;
use crate::process::signal::{Interrupted, deliver};
use crate::task;

pub(crate) use errno::Errno;
pub(crate) use system::system_name;
pub(crate) use unknown::unknown_calls;

/// The six argument registers of a system call.
pub(crate) type Arguments = [u64; 6];

/// The number of `restart_syscall`, which signal delivery makes user mode call.
pub(crate) const RESTART_SYSCALL: u64 = linux_raw_sys::general::__NR_restart_syscall as u64;

/// Runs the system call that `frame` asks for and leaves its result there.
#[inline]
pub(crate) fn dispatch(frame: &mut TrapFrame) {
    if task::is_sampled() { task::sampled(|| serve(frame)) } else { serve(frame) }
}

fn serve(frame: &mut TrapFrame) {
    let number = frame.rax;
    match table::call(frame, number, &frame.arguments()) {
        Ok(value) => frame.rax = value as u64,
        Err(error) => {
            frame.rax = error.to_register();
            if error.is_restart() {
                deliver(frame, Some(Interrupted { number, error }));
            }
        }
    }
}
