//! Taking signals on the way to user mode, and deciding what becomes of an interrupted call.

use super::super::{ExitStatus, Thread, core_file, current, exit, sequence};
use super::action::{Action, ActionFlags, Disposition};
use super::information::Information;
use super::set::{DefaultAction, Signal, SignalSet};
use super::state::{SignalState, notify};
use super::{frame, mask, stop};
use crate::arch::TrapFrame;
use crate::syscall::{Errno, RESTART_SYSCALL};
use crate::task;

/// Length of the `syscall` instruction.
const SYSCALL_SIZE: u64 = 2;

/// A system call that ended with one of the restart codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted {
    /// Its number.
    pub(crate) number: u64,
    /// Which restart code.
    pub(crate) error: Errno,
}

/// What a thread has to do next before it may run user code.
enum Next {
    Nothing,
    EndThread(ExitStatus),
    /// Took one that ends the process and leaves a core file, if there may be one. That is written without the lock.
    Dump(Signal),
    Stop,
    ReportContinued,
    /// Found a stop signal of the terminal; whether it may stop the process is to be looked up without the
    /// lock.
    MayStop(Signal),
    Handle(Information, Action),
    /// Took one that changes nothing; a timer that sent it is to know.
    Ignored(Information),
}

/// Does everything that is due before user mode: ends, stops, and puts handlers' frames on the user's stack.
/// `interrupted` is the system call on whose way out this is, if a signal cut it short.
pub(crate) fn deliver(trap: &mut TrapFrame, mut interrupted: Option<Interrupted>) {
    let thread = current();
    loop {
        task::current().clear_interrupted();
        match next(&thread) {
            Next::EndThread(status) => {
                drop(thread);
                exit::end_thread(status)
            }
            Next::Dump(signal) => {
                let dumped = core_file::write(trap, &thread, signal);
                let status = if dumped { ExitStatus::Dumped(signal) } else { ExitStatus::Killed(signal) };
                drop(thread);
                exit::end_process(status)
            }
            Next::Stop => stop::wait_until_continued(&thread),
            Next::ReportContinued => stop::report_continued(thread.process()),
            Next::MayStop(signal) => begin_stop(&thread, signal),
            Next::Handle(information, action) => {
                settle(trap, interrupted.take(), Some(action.flags));
                handle(trap, &thread, information, action);
            }
            Next::Ignored(mut information) => thread.process().timers().taken(&mut information),
            Next::Nothing => {
                settle(trap, interrupted.take(), None);
                let saved = thread.saved_mask.lock().take();
                match saved {
                    // The old mask may let further signals through: look again.
                    Some(saved) => mask::set_mask(saved),
                    None => return,
                }
            }
        }
    }
}

fn next(thread: &Thread) -> Next {
    let process = thread.process();
    let mut signals = process.signals.lock();
    if let Some(status) = signals.ending {
        return Next::EndThread(status);
    }
    if signals.executing.is_some_and(|id| id != thread.id()) {
        return Next::EndThread(ExitStatus::Exited(0));
    }
    if signals.stop.is_some() {
        return Next::Stop;
    }
    if core::mem::take(&mut signals.continued) {
        return Next::ReportContinued;
    }
    if let Some(information) = take(&mut signals, thread) {
        let signal = information.signal;
        let action = process.action(signal);
        match action.disposition {
            Disposition::Ignore => return Next::Ignored(information),
            Disposition::Handler(_) => return Next::Handle(information, action),
            Disposition::Default => match signal.default_action() {
                DefaultAction::Ignore | DefaultAction::Continue => return Next::Ignored(information),
                DefaultAction::Stop => {
                    signals.stop_taken = true;
                    return Next::MayStop(signal);
                }
                DefaultAction::Core => return Next::Dump(signal),
                DefaultAction::Terminate => {
                    return Next::EndThread(signals.begin_end(process, ExitStatus::Killed(signal)));
                }
            },
        }
    }
    Next::Nothing
}

/// The next signal for `thread`: its own before those of the process.
fn take(signals: &mut SignalState, thread: &Thread) -> Option<Information> {
    let wanted = !thread.blocked();
    let own = thread.pending.lock().take(wanted);
    own.or_else(|| signals.pending.take(wanted))
}

fn begin_stop(thread: &Thread, signal: Signal) {
    let process = thread.process();
    let allowed = stop::may_stop(process, signal);
    let mut signals = process.signals.lock();
    // A SIGCONT that came meanwhile has cleared the mark: then the stop is overruled.
    if allowed && signals.stop_taken && signals.ending.is_none() && signals.stop.is_none() {
        signals.stop = Some(signal);
        signals.stop_reported = false;
        signals.notify_all();
    }
    signals.stop_taken = false;
}

/// Puts the handler's frame on the stack, or ends the process if there is no room for it or its restartable sequence is broken.
fn handle(trap: &mut TrapFrame, thread: &Thread, mut information: Information, action: Action) {
    let signal = information.signal;
    thread.process().timers().taken(&mut information);
    if action.flags.contains(ActionFlags::RESET) {
        thread.process().actions().lock().reset_disposition(signal);
    }
    // The handler returns to where a sequence that it struck is to go on.
    let room = sequence::interrupt(thread, trap).and_then(|()| frame::push(trap, thread, information, action));
    if room.is_err() {
        if signal == Signal::SIGSEGV {
            thread.process().actions().lock().reset_disposition(signal);
        }
        force(Information::from_kernel(Signal::SIGSEGV));
        return;
    }
    let own =
        if action.flags.contains(ActionFlags::NO_DEFER) { SignalSet::EMPTY } else { SignalSet::of(signal) };
    mask::set_mask(thread.blocked() | action.mask | own);
}

/// Decides what an interrupted call becomes: EINTR, or once more. `handler` has the flags of the handler that
/// runs first, if any.
fn settle(trap: &mut TrapFrame, interrupted: Option<Interrupted>, handler: Option<ActionFlags>) {
    let Some(Interrupted { number, error }) = interrupted else { return };
    let again = match (error, handler) {
        (Errno::ERESTARTNOINTR, _) | (_, None) => true,
        (Errno::ERESTARTSYS, Some(flags)) => flags.contains(ActionFlags::RESTART),
        (_, Some(_)) => false,
    };
    if again {
        let continued = error == Errno::ERESTART_RESTARTBLOCK;
        trap.rax = if continued { RESTART_SYSCALL } else { number };
        trap.rip = trap.rip.wrapping_sub(SYSCALL_SIZE);
    } else {
        trap.rax = Errno::EINTR.to_register();
    }
}

/// Sends the current thread a signal that it cannot escape, because it cannot go on without: a fault. If the
/// signal is blocked or ignored, the default action is restored and the process ends by it.
pub(crate) fn force(information: Information) {
    let thread = current();
    let process = thread.process();
    let signal = information.signal;
    let signals = process.signals.lock();
    let actions = process.actions();
    let mut actions = actions.lock();
    let blocked = thread.blocked();
    if blocked.contains(signal) || actions.get(signal).disposition == Disposition::Ignore {
        actions.reset_disposition(signal);
        thread.store_blocked(blocked & !SignalSet::of(signal));
    }
    drop(actions);
    let mut pending = thread.pending.lock();
    // The fault's own address must reach the handler, not that of an earlier `kill`.
    pending.discard(SignalSet::of(signal));
    // Standard signals always have room.
    let _ = pending.push(information);
    drop(pending);
    notify(&thread);
    drop(signals);
}
