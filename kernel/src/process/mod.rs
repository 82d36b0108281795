//! Processes and threads.

use crate::arch::TrapFrame;
use crate::{console, report, task};
use protocol::report::Exit;

/// A thread of a program.
pub(crate) struct Thread;

/// The first kernel task: starts the main program.
pub(crate) fn start_init() {
    report::program_starts();
    console::write(console::Channel::Output, b"no program\n");
    report::finish(Exit::Code(0))
}

/// An exception that a program caused.
pub(crate) fn exception(_frame: &mut TrapFrame, _vector: u8) {
    task::exit_current();
}

/// Work before the return to user mode.
pub(crate) fn return_to_user(_frame: &mut TrapFrame) {
    task::current().clear_interrupted();
}
