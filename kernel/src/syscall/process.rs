//! Making, replacing, ending and waiting for processes; ids, groups and sessions.

use super::limit::UsageRecord;
use super::{Arguments, Errno};
use crate::arch::TrapFrame;
use crate::files::{self, Entry};
use crate::memory::user;
use crate::process::signal::{Information, Origin, Signal, code};
use crate::process::{
    self, CloneFlags, CloneRequest, Event, ExitStatus, NANOSECONDS_PER_TICK, Report, STRING_MAX, Strings,
    Thread, USER_END, WaitOptions, Which, current, relations,
};
use crate::task;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Longest path, with its NUL.
const PATH_MAX: usize = 4096;
/// Low byte of `clone`'s flags: the signal at the end.
const SIGNAL_MASK: u64 = 0xff;

/// `fork()`.
pub(super) fn fork(frame: &TrapFrame) -> Result<usize, Errno> {
    make(frame, CloneRequest { exit_signal: Some(Signal::SIGCHLD), ..CloneRequest::default() })
}

/// `vfork()`.
pub(super) fn vfork(frame: &TrapFrame) -> Result<usize, Errno> {
    let flags = CloneFlags::VFORK | CloneFlags::VM;
    make(frame, CloneRequest { flags, exit_signal: Some(Signal::SIGCHLD), ..CloneRequest::default() })
}

/// `clone(flags, stack, parent word, child word, thread pointer)`.
pub(super) fn clone(frame: &TrapFrame, arguments: &Arguments) -> Result<usize, Errno> {
    let [flags, stack, parent_word, child_word, thread_pointer, _] = *arguments;
    // Only 32 bits count here; `clone3` has more.
    let flags = u64::from(flags as u32);
    let exit_signal = Signal::new(flags & SIGNAL_MASK);
    let flags = CloneFlags::from_bits(flags & !SIGNAL_MASK).ok_or(Errno::EINVAL)?;
    // This form has one word for two answers.
    if flags.contains(CloneFlags::PIDFD | CloneFlags::PARENT_SETTID) {
        return Err(Errno::EINVAL);
    }
    let descriptor_word = parent_word;
    make(
        frame,
        CloneRequest { flags, stack, thread_pointer, parent_word, descriptor_word, child_word, exit_signal },
    )
}

/// `struct clone_args`, in its longest form.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct CloneArguments {
    flags: u64,
    descriptor_word: u64,
    child_word: u64,
    parent_word: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    thread_pointer: u64,
    wanted_ids: u64,
    wanted_id_count: u64,
    control_group: u64,
}

/// `clone3(arguments, size)`.
pub(super) fn clone3(frame: &TrapFrame, arguments: &Arguments) -> Result<usize, Errno> {
    let [pointer, size, ..] = *arguments;
    let given = read_extensible::<CloneArguments>(pointer, size, u64::from(abi::CLONE_ARGS_SIZE_VER0))?;
    let flags = CloneFlags::from_bits(given.flags).ok_or(Errno::EINVAL)?;
    let obsolete = flags.contains(CloneFlags::DETACHED);
    let exit_signal = match given.exit_signal {
        0 => None,
        number => Some(Signal::new(number).ok_or(Errno::EINVAL)?),
    };
    let signal_on_thread = exit_signal.is_some() && flags.intersects(CloneFlags::THREAD | CloneFlags::PARENT);
    let two_answers = flags.contains(CloneFlags::PIDFD | CloneFlags::PARENT_SETTID)
        && given.descriptor_word == given.parent_word;
    let half_a_stack = (given.stack == 0) != (given.stack_size == 0);
    if obsolete || signal_on_thread || two_answers || half_a_stack || given.wanted_id_count != 0 {
        return Err(Errno::EINVAL);
    }
    let stack = given.stack.checked_add(given.stack_size).filter(|end| *end <= USER_END);
    make(
        frame,
        CloneRequest {
            flags,
            stack: stack.ok_or(Errno::EINVAL)?,
            thread_pointer: given.thread_pointer,
            parent_word: given.parent_word,
            descriptor_word: given.descriptor_word,
            child_word: given.child_word,
            exit_signal,
        },
    )
}

/// Reads a structure that may be shorter or longer than the one known here: what is missing is zero, and what
/// is more must be.
///
/// # Errors
/// EINVAL below `least`, E2BIG for more than a page or for unknown parts that are set, EFAULT.
pub(super) fn read_extensible<T: FromBytes + IntoBytes>(
    pointer: u64,
    size: u64,
    least: u64,
) -> Result<T, Errno> {
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    if size < least {
        return Err(Errno::EINVAL);
    }
    let mut bytes = alloc::vec![0; (size as usize).max(size_of::<T>())];
    user::read_bytes(pointer, &mut bytes[..size as usize])?;
    let (known, unknown) = bytes.split_at(size_of::<T>());
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    T::read_from_bytes(known).map_err(|_| Errno::EINVAL)
}

fn make(frame: &TrapFrame, request: CloneRequest) -> Result<usize, Errno> {
    if request.thread_pointer >= USER_END && request.flags.contains(CloneFlags::SETTLS) {
        return Err(Errno::EPERM);
    }
    process::clone(frame, request).map(|id| id as usize)
}

/// `execve(path, arguments, environment)`.
pub(super) fn execve(frame: &mut TrapFrame, arguments: &Arguments) -> Result<usize, Errno> {
    let [path, strings, environment, ..] = *arguments;
    let path = user::read_string(path, PATH_MAX, Errno::ENAMETOOLONG)?;
    let thread = current();
    let context = thread.context().ok_or(Errno::ESRCH)?;
    let caller = process::caller_of(thread.process());
    let program = files::open_executable(&context, &caller, &path)?;
    execute(frame, program, &path, strings, environment)
}

/// `execveat(directory, path, arguments, environment, flags)`.
pub(super) fn execveat(frame: &mut TrapFrame, arguments: &Arguments) -> Result<usize, Errno> {
    let [directory, path, strings, environment, flags, _] = *arguments;
    let known = u64::from(abi::AT_EMPTY_PATH | abi::AT_SYMLINK_NOFOLLOW);
    if flags & !known != 0 {
        return Err(Errno::EINVAL);
    }
    let path = user::read_string(path, PATH_MAX, Errno::ENAMETOOLONG)?;
    let program = super::path::find_executable(directory as i32, &path, flags as u32)?;
    let directory = directory as i32;
    let shown = if path.starts_with(b"/") || directory == abi::AT_FDCWD {
        path
    } else if path.is_empty() {
        alloc::format!("/dev/fd/{directory}").into_bytes()
    } else {
        [alloc::format!("/dev/fd/{directory}/").as_bytes(), &path].concat()
    };
    execute(frame, program, &shown, strings, environment)
}

fn execute(
    frame: &mut TrapFrame,
    program: Arc<Entry>,
    path: &[u8],
    arguments: u64,
    environment: u64,
) -> Result<usize, Errno> {
    let arguments =
        process::Arguments { arguments: read_strings(arguments)?, environment: read_strings(environment)? };
    process::execute(frame, program, path, arguments)?;
    // What the new program finds in `rax`.
    Ok(0)
}

/// Reads a list of strings that ends in a null pointer; a null list is empty.
fn read_strings(mut list: u64) -> Result<Strings, Errno> {
    let mut strings = Strings::default();
    if list == 0 {
        return Ok(strings);
    }
    loop {
        let pointer: u64 = user::read(list)?;
        if pointer == 0 {
            return Ok(strings);
        }
        strings.push(&user::read_string(pointer, STRING_MAX, Errno::E2BIG)?)?;
        if strings.bytes() + strings.count() as u64 * 8 > process::ARGUMENT_ROOM_MAX {
            return Err(Errno::E2BIG);
        }
        list = list.checked_add(8).ok_or(Errno::EFAULT)?;
        task::yield_if_needed();
    }
}

/// `exit(code)`.
pub(super) fn exit(arguments: &Arguments) -> ! {
    process::end_thread(ExitStatus::Exited(arguments[0] as u8))
}

/// `exit_group(code)`.
pub(super) fn exit_group(arguments: &Arguments) -> ! {
    process::end_process(ExitStatus::Exited(arguments[0] as u8))
}

/// `wait4(process, status, options, usage)`.
pub(super) fn wait4(arguments: &Arguments) -> Result<usize, Errno> {
    let [which, status, options, usage, ..] = *arguments;
    let allowed = WaitOptions::NO_HANG
        | WaitOptions::STOPPED
        | WaitOptions::CONTINUED
        | WaitOptions::NO_THREAD
        | WaitOptions::ALL
        | WaitOptions::CLONE;
    let options = WaitOptions::from_bits(options as u32).filter(|options| allowed.contains(*options));
    let options = options.ok_or(Errno::EINVAL)? | WaitOptions::EXITED;
    let which = match which as u32 as i32 {
        -1 => Which::Any,
        0 => own_group()?,
        i32::MIN => return Err(Errno::ESRCH),
        id if id > 0 => Which::Process(id as u32),
        group => Which::Group(group.unsigned_abs()),
    };
    let Some(report) = process::wait(which, options)? else { return Ok(0) };
    if status != 0 {
        user::write(status, &status_word(report.event))?;
    }
    if usage != 0 {
        user::write(usage, &UsageRecord::of(&report.usage))?;
    }
    Ok(report.process as usize)
}

fn own_group() -> Result<Which, Errno> {
    let own = relations(current().process().id()).ok_or(Errno::ESRCH)?;
    Ok(Which::Group(own.group))
}

fn status_word(event: Event) -> u32 {
    match event {
        Event::Ended(status) => status.wait_word(),
        Event::Stopped(signal) => u32::from(signal.number()) << 8 | 0x7f,
        Event::Continued => 0xffff,
    }
}

/// `waitid(kind, id, information, options, usage)`.
pub(super) fn waitid(arguments: &Arguments) -> Result<usize, Errno> {
    let [kind, id, information, options, usage, _] = *arguments;
    let options = WaitOptions::from_bits(options as u32).ok_or(Errno::EINVAL)?;
    if !options.intersects(WaitOptions::EXITED | WaitOptions::STOPPED | WaitOptions::CONTINUED) {
        return Err(Errno::EINVAL);
    }
    let id = id as u32;
    let mut wait_options = options;
    // For a descriptor that does not wait, that nothing has happened is an error.
    let mut nothing = Ok(());
    let which = match kind as u32 {
        abi::P_ALL => Which::Any,
        abi::P_PID if id as i32 > 0 => Which::Process(id),
        abi::P_PGID if id == 0 => own_group()?,
        abi::P_PGID if id as i32 > 0 => Which::Group(id),
        abi::P_PIDFD if id as i32 >= 0 => {
            let description = super::path::usable_description(u64::from(id))?;
            if description.flags() & abi::O_NONBLOCK != 0 && !options.contains(WaitOptions::NO_HANG) {
                wait_options |= WaitOptions::NO_HANG;
                nothing = Err(Errno::EAGAIN);
            }
            let file = super::process_descriptor::process_file(&description)?;
            // Another child may have the id by now.
            file.process().map_err(|_| Errno::ECHILD)?;
            Which::Process(file.id())
        }
        _ => return Err(Errno::EINVAL),
    };
    let report = process::wait(which, wait_options)?;
    if report.is_none() {
        nothing?;
    }
    if let Some(report) = &report
        && usage != 0
    {
        user::write(usage, &UsageRecord::of(&report.usage))?;
    }
    if information != 0 {
        // With nothing to report, pid and signal read as zero.
        let bytes = report.map_or([0; 128], |report| child_information(&report).to_bytes());
        user::write_bytes(information, &bytes)?;
    }
    Ok(0)
}

fn child_information(report: &Report) -> Information {
    let (code, status) = match report.event {
        Event::Ended(ExitStatus::Exited(value)) => (code::CLD_EXITED, i32::from(value)),
        Event::Ended(ExitStatus::Killed(signal)) => (code::CLD_KILLED, i32::from(signal.number())),
        Event::Ended(ExitStatus::Dumped(signal)) => (code::CLD_DUMPED, i32::from(signal.number())),
        Event::Stopped(signal) => (code::CLD_STOPPED, i32::from(signal.number())),
        Event::Continued => (code::CLD_CONTINUED, i32::from(Signal::SIGCONT.number())),
    };
    let origin = Origin::Child {
        process: report.process,
        user: report.user,
        status,
        user_ticks: report.usage.time.user / NANOSECONDS_PER_TICK,
        system_ticks: report.usage.time.system / NANOSECONDS_PER_TICK,
    };
    Information { signal: Signal::SIGCHLD, error: 0, code, origin }
}

/// `getpid()`.
pub(super) fn getpid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(with_current(|thread| thread.process().id()))
}

/// Looks at the running thread without taking a reference: the id calls do nothing else.
fn with_current(look: impl FnOnce(&Thread) -> u32) -> usize {
    task::current().thread().map_or(0, |thread| look(thread)) as usize
}

/// `gettid()`.
pub(super) fn gettid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(with_current(Thread::id))
}

/// `getppid()`.
pub(super) fn getppid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(with_current(|thread| thread.process().parent()))
}

/// `getpgid(process)`.
pub(super) fn getpgid(arguments: &Arguments) -> Result<usize, Errno> {
    Ok(relations_of(arguments[0])?.group as usize)
}

/// `getpgrp()`.
pub(super) fn getpgrp(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(relations_of(0)?.group as usize)
}

/// `getsid(process)`.
pub(super) fn getsid(arguments: &Arguments) -> Result<usize, Errno> {
    Ok(relations_of(arguments[0])?.session as usize)
}

fn relations_of(id: u64) -> Result<process::Relations, Errno> {
    let id = if id as u32 == 0 { current().process().id() } else { id as u32 };
    relations(id).ok_or(Errno::ESRCH)
}

/// `setpgid(process, group)`.
pub(super) fn setpgid(arguments: &Arguments) -> Result<usize, Errno> {
    let (id, group) = (arguments[0] as u32, arguments[1] as u32);
    if (group as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    if (id as i32) < 0 {
        return Err(Errno::ESRCH);
    }
    process::set_group(id, group)?;
    Ok(0)
}

/// `setsid()`.
pub(super) fn setsid(_arguments: &Arguments) -> Result<usize, Errno> {
    process::new_session().map(|id| id as usize)
}

/// `set_tid_address(word)`.
pub(super) fn set_tid_address(arguments: &Arguments) -> Result<usize, Errno> {
    let thread = current();
    thread.clear_at_exit.store(arguments[0], Ordering::Relaxed);
    Ok(thread.id() as usize)
}

/// `unshare(flags)`: files and working directory can be; namespaces are not offered.
pub(super) fn unshare(arguments: &Arguments) -> Result<usize, Errno> {
    let flags = CloneFlags::from_bits(arguments[0]).ok_or(Errno::EINVAL)?;
    let known = CloneFlags::FILES | CloneFlags::FS | CloneFlags::SYSVSEM;
    // These three are already unshared in a process of one thread, and cannot be in another.
    let single = CloneFlags::THREAD | CloneFlags::SIGHAND | CloneFlags::VM;
    let alone = current().process().thread_count() == 1;
    if !(known | single).contains(flags) || (flags.intersects(single) && !alone) {
        return Err(Errno::EINVAL);
    }
    process::unshare(flags)?;
    Ok(0)
}
