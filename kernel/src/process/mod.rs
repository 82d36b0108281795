//! Processes and threads.

use crate::arch::TrapFrame;
use crate::task;
use crate::{console, power};

/// A thread of a program.
pub(crate) struct Thread;

/// The first kernel task: starts the main program.
pub(crate) fn start_init() {
    console::write(console::Channel::Output, b"no program\n");
    power::exit(power::ORDERLY);
}

/// An exception that a program caused.
pub(crate) fn exception(_frame: &mut TrapFrame, _vector: u8) {
    task::exit_current();
}

/// Work before the return to user mode.
pub(crate) fn return_to_user(_frame: &mut TrapFrame) {
    task::current().clear_interrupted();
}
