//! Signals: actions, masks, sending, waiting.

use super::time::read_timeout;
use super::{Arguments, Errno};
use crate::arch::TrapFrame;
use crate::memory::user;
use crate::process::credentials::CAP_KILL;
use crate::process::signal::{
    self, Action, ActionFlags, Disposition, INFORMATION_SIZE, Information, Signal, SignalSet, StackRecord,
    code,
};
use crate::process::{
    Process, REAPER, Thread, current, find_process, find_thread, group_members, process_ids, relations,
};
use crate::sync::WaitQueue;
use crate::time;
use alloc::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Size of `sigset_t` in the kernel's ABI.
const SET_SIZE: u64 = 8;
const BLOCK: u64 = 0;
const UNBLOCK: u64 = 1;
const SET: u64 = 2;

/// `struct sigaction` of the kernel's ABI.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct ActionRecord {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// `rt_sigaction(signal, new, old, size)`.
pub(super) fn rt_sigaction(arguments: &Arguments) -> Result<usize, Errno> {
    let [number, new, old, size, ..] = *arguments;
    let signal = signal_number(number)?.ok_or(Errno::EINVAL)?;
    check_size(size)?;
    let new = match new {
        0 => None,
        pointer => Some(user::read::<ActionRecord>(pointer)?),
    };
    if new.is_some() && SignalSet::UNBLOCKABLE.contains(signal) {
        return Err(Errno::EINVAL);
    }
    let thread = current();
    let before = match new {
        None => thread.process().action(signal),
        Some(record) => signal::set_action(thread.process(), signal, action_of(record)),
    };
    if old != 0 {
        let record = ActionRecord {
            handler: before.disposition.to_register(),
            flags: before.flags.bits(),
            restorer: before.restorer,
            mask: before.mask.bits(),
        };
        user::write(old, &record)?;
    }
    Ok(0)
}

fn action_of(record: ActionRecord) -> Action {
    Action {
        disposition: Disposition::from_register(record.handler),
        // Unknown flags are dropped, so that a program can ask which are known.
        flags: ActionFlags::from_bits_truncate(record.flags),
        restorer: record.restorer,
        mask: SignalSet::from_bits(record.mask) & !SignalSet::UNBLOCKABLE,
    }
}

/// `rt_sigprocmask(how, new, old, size)`.
pub(super) fn rt_sigprocmask(arguments: &Arguments) -> Result<usize, Errno> {
    let [how, new, old, size, ..] = *arguments;
    check_size(size)?;
    let before = current().blocked();
    if new != 0 {
        let set = SignalSet::from_bits(user::read(new)?);
        signal::set_mask(match how as u32 as u64 {
            BLOCK => before | set,
            UNBLOCK => before & !set,
            SET => set,
            _ => return Err(Errno::EINVAL),
        });
    }
    if old != 0 {
        user::write(old, &before.bits())?;
    }
    Ok(0)
}

/// `rt_sigpending(result, size)`.
pub(super) fn rt_sigpending(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[1] > SET_SIZE {
        return Err(Errno::EINVAL);
    }
    let pending = signal::pending_and_blocked();
    user::write_bytes(arguments[0], &pending.bits().to_le_bytes()[..arguments[1] as usize])?;
    Ok(0)
}

/// `rt_sigsuspend(mask, size)`.
pub(super) fn rt_sigsuspend(arguments: &Arguments) -> Result<usize, Errno> {
    check_size(arguments[1])?;
    signal::suspend(SignalSet::from_bits(user::read(arguments[0])?))
}

/// `pause()`.
pub(super) fn pause(_arguments: &Arguments) -> Result<usize, Errno> {
    let nothing = WaitQueue::new();
    let _ = nothing.wait_interruptible::<()>(None, || None);
    Err(Errno::ERESTARTNOHAND)
}

/// `rt_sigtimedwait(set, information, timeout, size)`.
pub(super) fn rt_sigtimedwait(arguments: &Arguments) -> Result<usize, Errno> {
    let [set, information, timeout, size, ..] = *arguments;
    check_size(size)?;
    let set = SignalSet::from_bits(user::read(set)?);
    let deadline = read_timeout(timeout)?.map(|timeout| time::now().saturating_add(timeout));
    let taken = signal::wait_for(set, deadline)?;
    if information != 0 {
        user::write_bytes(information, &taken.to_bytes())?;
    }
    Ok(usize::from(taken.signal.number()))
}

/// `rt_sigreturn()`.
pub(super) fn rt_sigreturn(frame: &mut TrapFrame) -> Result<usize, Errno> {
    Ok(signal::return_from_handler(frame) as usize)
}

/// `sigaltstack(new, old)`.
pub(super) fn sigaltstack(frame: &TrapFrame, arguments: &Arguments) -> Result<usize, Errno> {
    let before = signal::StackRecord::of(current().alternate_stack(), frame.rsp);
    if arguments[0] != 0 {
        user::read::<StackRecord>(arguments[0])?.install(frame.rsp)?;
    }
    if arguments[1] != 0 {
        user::write(arguments[1], &before)?;
    }
    Ok(0)
}

/// `kill(process, signal)`: a positive id is a process, 0 the caller's group, -1 everyone else, other
/// negative ids a group.
pub(super) fn kill(arguments: &Arguments) -> Result<usize, Errno> {
    let target = arguments[0] as u32 as i32;
    let signal = signal_number(arguments[1])?;
    match target {
        0 => {
            let own = relations(current().process().id()).ok_or(Errno::ESRCH)?;
            kill_all(&group_members(own.group), signal)
        }
        -1 => {
            let own = current().process().id();
            let others = process_ids().into_iter().filter(|&id| id != own);
            let others: alloc::vec::Vec<_> = others.filter_map(find_process).collect();
            kill_all(&others, signal)
        }
        1.. => kill_one(target as u32, signal),
        group => kill_all(&group_members(group.unsigned_abs()), signal),
    }
}

fn kill_one(id: u32, signal: Option<Signal>) -> Result<usize, Errno> {
    if id == REAPER {
        return send_to_kernel();
    }
    let process = find_process(id).ok_or(Errno::ESRCH)?;
    send(&process, signal)?;
    Ok(0)
}

/// The kernel is there, as root's first process, and ignores what it is sent.
fn send_to_kernel() -> Result<usize, Errno> {
    let own = current().process().credentials();
    let is_root = own.user.effective == 0 || own.user.real == 0;
    if is_root || own.has(CAP_KILL) { Ok(0) } else { Err(Errno::EPERM) }
}

fn kill_all(processes: &[Arc<Process>], signal: Option<Signal>) -> Result<usize, Errno> {
    let mut outcome = Err(Errno::ESRCH);
    for process in processes {
        match send(process, signal) {
            Ok(()) => outcome = Ok(0),
            Err(error) if outcome.is_err() => outcome = Err(error),
            Err(_) => {}
        }
    }
    outcome
}

fn send(process: &Process, signal: Option<Signal>) -> Result<(), Errno> {
    check_permission(process, signal)?;
    match signal {
        None => Ok(()),
        Some(signal) => signal::send_to_process(process, from_caller(signal, code::SI_USER)),
    }
}

fn from_caller(signal: Signal, code: i32) -> Information {
    let thread = current();
    let process = thread.process();
    Information::from_user(signal, code, process.id(), process.credentials().user.real)
}

/// Whether the caller may signal `process`: same user, privilege, or SIGCONT within the session.
fn check_permission(process: &Process, signal: Option<Signal>) -> Result<(), Errno> {
    let thread = current();
    let caller = thread.process();
    let own = caller.credentials();
    let theirs = process.credentials().user;
    let same = [own.user.effective, own.user.real].iter().any(|id| *id == theirs.real || *id == theirs.saved);
    if same || own.has(CAP_KILL) || process.id() == caller.id() {
        return Ok(());
    }
    let session = |id| relations(id).map(|relations| relations.session);
    if signal == Some(Signal::SIGCONT) && session(caller.id()) == session(process.id()) {
        return Ok(());
    }
    Err(Errno::EPERM)
}

/// `tkill(thread, signal)`.
pub(super) fn tkill(arguments: &Arguments) -> Result<usize, Errno> {
    let id = arguments[0] as u32 as i32;
    if id <= 0 {
        return Err(Errno::EINVAL);
    }
    send_to(find_thread(id as u32), arguments[1])
}

/// `tgkill(process, thread, signal)`.
pub(super) fn tgkill(arguments: &Arguments) -> Result<usize, Errno> {
    let (process, id) = (arguments[0] as u32 as i32, arguments[1] as u32 as i32);
    if process <= 0 || id <= 0 {
        return Err(Errno::EINVAL);
    }
    let thread = find_thread(id as u32).filter(|thread| thread.process().id() == process as u32);
    send_to(thread, arguments[2])
}

fn send_to(thread: Option<Arc<Thread>>, number: u64) -> Result<usize, Errno> {
    let signal = signal_number(number)?;
    let thread = thread.ok_or(Errno::ESRCH)?;
    check_permission(thread.process(), signal)?;
    if let Some(signal) = signal {
        signal::send_to_thread(&thread, from_caller(signal, code::SI_TKILL))?;
    }
    Ok(0)
}

/// `rt_sigqueueinfo(process, signal, information)`.
pub(super) fn rt_sigqueueinfo(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, number, information, ..] = *arguments;
    let (signal, information) = queued(number, information)?;
    if id as u32 == REAPER {
        check_origin(&information, REAPER)?;
        return send_to_kernel();
    }
    let process = find_process(id as u32).ok_or(Errno::ESRCH)?;
    check_origin(&information, process.id())?;
    check_permission(&process, signal)?;
    if let Some((_, information)) = signal.zip(information) {
        signal::send_to_process(&process, information)?;
    }
    Ok(0)
}

/// `rt_tgsigqueueinfo(process, thread, signal, information)`.
pub(super) fn rt_tgsigqueueinfo(arguments: &Arguments) -> Result<usize, Errno> {
    let [process, id, number, information, ..] = *arguments;
    if process as i32 <= 0 || id as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    let (signal, information) = queued(number, information)?;
    let thread = find_thread(id as u32).filter(|thread| thread.process().id() == process as u32);
    let thread = thread.ok_or(Errno::ESRCH)?;
    check_origin(&information, thread.process().id())?;
    check_permission(thread.process(), signal)?;
    if let Some((_, information)) = signal.zip(information) {
        signal::send_to_thread(&thread, information)?;
    }
    Ok(0)
}

/// Sends to a process that was named by a descriptor: of id `id`, and gone if it cannot be had. Without `information` as `kill` does.
pub(super) fn send_by_descriptor(
    id: u32,
    process: Result<Arc<Process>, Errno>,
    number: u64,
    information: u64,
) -> Result<usize, Errno> {
    if information == 0 {
        let process = process?;
        send(&process, signal_number(number)?)?;
        return Ok(0);
    }
    let mut bytes = [0; INFORMATION_SIZE];
    user::read_bytes(information, &mut bytes)?;
    if bytes[..4] != (number as u32).to_le_bytes() {
        return Err(Errno::EINVAL);
    }
    // Of a signal that is none nothing but its origin is looked at before the process is.
    let code = i32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if is_forged(code) && id != current().process().id() {
        return Err(Errno::EPERM);
    }
    let process = process?;
    let signal = signal_number(number)?;
    check_permission(&process, signal)?;
    if let Some(signal) = signal {
        signal::send_to_process(&process, Information::from_bytes(signal, &bytes))?;
    }
    Ok(0)
}

type Queued = (Option<Signal>, Option<Information>);

fn queued(number: u64, pointer: u64) -> Result<Queued, Errno> {
    let mut bytes = [0; INFORMATION_SIZE];
    user::read_bytes(pointer, &mut bytes)?;
    let signal = signal_number(number)?;
    Ok((signal, signal.map(|signal| Information::from_bytes(signal, &bytes))))
}

/// Nobody may forge a signal of the kernel or of `kill` towards another process.
fn check_origin(information: &Option<Information>, target: u32) -> Result<(), Errno> {
    let forged = information.is_some_and(|one| is_forged(one.code));
    if forged && target != current().process().id() { Err(Errno::EPERM) } else { Ok(()) }
}

/// Whether only the kernel, `kill` and `tkill` say where a signal comes from by this code.
fn is_forged(code: i32) -> bool {
    code >= 0 || code == code::SI_TKILL
}

/// A signal number; `None` for 0, which only asks whether one could be sent.
fn signal_number(number: u64) -> Result<Option<Signal>, Errno> {
    match number as u32 {
        0 => Ok(None),
        number => Signal::new(u64::from(number)).map(Some).ok_or(Errno::EINVAL),
    }
}

fn check_size(size: u64) -> Result<(), Errno> {
    if size == SET_SIZE { Ok(()) } else { Err(Errno::EINVAL) }
}
