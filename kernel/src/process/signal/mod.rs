//! Signals: sent by `send`, waiting in `pending`, taken on the way back to user mode by `deliver`, put on the
//! user's stack by `frame`.
//!
//! The promise between sender and receiver: a sender adds to a pending set, then marks the chosen thread's
//! task as interrupted and wakes it (or interrupts its CPU if it is in user mode). A thread clears that mark
//! before it looks for signals on its way to user mode, and looks again whenever its mask changes. So a
//! signal that is not blocked is always either taken, or marked and about to be taken.
//!
//! What ends or stops a whole process (`SignalState::ending`, `executing`, `stop`) is not a pending signal
//! but a state under the same lock, which every thread of the process looks at on its way to user mode. A
//! fatal signal turns into `ending` once, by whichever thread takes it; later ones change nothing.

mod action;
mod arrivals;
mod deliver;
mod frame;
mod information;
mod mask;
mod pending;
mod send;
mod set;
mod state;
mod stop;

pub(crate) use action::{Action, ActionFlags, Actions, Disposition};
pub(crate) use arrivals::Arrivals;
pub(crate) use deliver::{Interrupted, deliver, force};
pub(crate) use frame::{StackRecord, frame_size, return_from_handler};
pub(crate) use information::{INFORMATION_SIZE, Information, Origin, RECORD_SIZE, code};
pub(crate) use mask::{AlternateStack, pending, pending_and_blocked, set_mask, suspend, take_pending, wait_for, with_mask};
pub(crate) use pending::Pending;
pub(super) use send::{expire_timer_signal, wake_one_for};
pub(crate) use send::{raise, send_to_process, send_to_thread, set_action};
pub(crate) use set::{Signal, SignalSet};
pub(super) use state::{SignalState, notify};
pub(super) use stop::report_if_stopped;
