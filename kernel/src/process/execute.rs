//! `execve`: from a path to the first instruction of a new program.
//!
//! The new address space is built completely beside the old one before anything of the old is given up, so
//! every error that the file or the arguments can cause is reported to the old program. Only then do the
//! other threads end, and from there on nothing can fail.

use super::credentials::Credentials;
use super::family::FAMILY;
use super::image::{Image, ReadAt};
use super::initial_stack::Arguments;
use super::limits::{Limits, Resource};
use super::loader::{self, Loaded};
use super::script::{self, Script};
use super::signal::AlternateStack;
use super::strings::Strings;
use super::user_space::{Program, UserSpace};
use super::{Process, Thread, current, exit};
use crate::arch::{FpuState, TrapFrame};
use crate::files::{self, Caller, Entry, Running};
use crate::syscall::Errno;
use crate::task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Scripts of which each is the interpreter of the one before: as many as Linux starts.
const SCRIPT_DEPTH: usize = 5;

/// Finds and checks the file that a path names; relative to what is the caller's business.
pub(crate) type Find<'a> = &'a dyn Fn(&[u8]) -> Result<Arc<Entry>, Errno>;

/// A program ready to run in an address space of its own.
pub(super) struct Prepared {
    memory: Arc<UserSpace>,
    entry: u64,
    stack: u64,
    name: Vec<u8>,
}

/// Replaces the current process's program. Returns only on failure; on success `trap` is the new program's
/// first state.
///
/// # Errors
/// Linux's: ENOENT, EACCES, ENOEXEC, E2BIG, ENOMEM, ELOOP, and what `find` returns.
pub(crate) fn execute(
    trap: &mut TrapFrame,
    program: Arc<Entry>,
    path: &[u8],
    arguments: Arguments,
) -> Result<(), Errno> {
    let thread = current();
    let context = thread.context().ok_or(Errno::ESRCH)?;
    let caller = caller_of(thread.process());
    let find = |path: &[u8]| files::open_executable(&context, &caller, path);
    let process = thread.process();
    let prepared = prepare(&process.credentials(), &process.limits(), program, path, arguments, &find)?;
    end_other_threads(&thread)?;
    commit(trap, &thread, prepared);
    Ok(())
}

/// As whom `process` looks at files.
pub(crate) fn caller_of(process: &Process) -> Caller {
    let credentials = process.credentials();
    Caller {
        user: credentials.user.file_system,
        group: credentials.group.file_system,
        groups: credentials.groups,
    }
}

/// Builds the address space for `path`, following scripts to their interpreters.
pub(super) fn prepare(
    credentials: &Credentials,
    limits: &Limits,
    mut program: Arc<Entry>,
    path: &[u8],
    mut arguments: Arguments,
    find: Find<'_>,
) -> Result<Prepared, Errno> {
    let stack_limit = limits.get(Resource::STACK).soft;
    arguments.check(path, stack_limit)?;
    if arguments.arguments.count() == 0 {
        // A program may count on argv[0]; Linux provides an empty one.
        arguments.arguments.push(b"")?;
    }
    let mut script_path = path.to_vec();
    for _ in 0..=SCRIPT_DEPTH {
        let mut start = [0; script::LINE_MAX];
        let length = read_at(&program, 0, &mut start)?;
        let Some(script) = script::parse(&start[..length])? else {
            return load(credentials, &program, path, &arguments, find, limits);
        };
        script_arguments(&mut arguments, script, &script_path)?;
        script_path = script.interpreter.to_vec();
        arguments.check(path, stack_limit)?;
        program = find(&script_path)?;
    }
    Err(Errno::ELOOP)
}

/// `script arg...` becomes `interpreter [argument] script arg...`; what was argv[0] is gone.
fn script_arguments(arguments: &mut Arguments, script: Script<'_>, path: &[u8]) -> Result<(), Errno> {
    let mut list = Strings::default();
    list.push(script.interpreter)?;
    if let Some(argument) = script.argument {
        list.push(argument)?;
    }
    list.push(path)?;
    list.push_all_but_first(&arguments.arguments)?;
    arguments.arguments = list;
    Ok(())
}

fn load(
    credentials: &Credentials,
    program: &Arc<Entry>,
    path: &[u8],
    arguments: &Arguments,
    find: Find<'_>,
    limits: &Limits,
) -> Result<Prepared, Errno> {
    let read: ReadAt<'_> = &|offset, buffer| read_at(program, offset, buffer);
    let image = Image::parse(read)?;
    let interpreter = match &image.interpreter {
        None => None,
        Some(path) => {
            let file = find(path)?;
            let read: ReadAt<'_> = &|offset, buffer| read_at(&file, offset, buffer);
            let image = Image::parse(read).map_err(|_| Errno::ELIBBAD)?;
            Some((file, image))
        }
    };
    let identities = [
        credentials.user.real,
        credentials.user.effective,
        credentials.group.real,
        credentials.group.effective,
    ];
    let loaded = loader::load(loader::Request {
        program: (program, &image),
        interpreter: interpreter.as_ref().map(|(file, image)| (file, image)),
        path,
        arguments,
        identities,
        limits,
        credentials,
    })?;
    let Loaded { space, entry, stack } = loaded;
    let shown = program.shown_path(files::root());
    let name = shown.rsplit(|&byte| byte == b'/').next().unwrap_or(&shown).to_vec();
    let facts = Program {
        file: Some(Running::new(program)?),
        arguments: stack.arguments.clone(),
        environment: stack.environment.clone(),
        stack_start: stack.pointer,
    };
    Ok(Prepared { memory: UserSpace::new(space, facts), entry, stack: stack.pointer, name })
}

fn read_at(entry: &Entry, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    Ok(entry.inode().regular().map_err(|_| Errno::EACCES)?.read_at(offset, buffer))
}

/// Leaves the current thread alone in its process, bearing the process's id.
///
/// # Errors
/// ERESTARTNOINTR if the process is ending or another thread is in here: then this thread is about to end.
fn end_other_threads(thread: &Arc<Thread>) -> Result<(), Errno> {
    let process = thread.process();
    {
        let mut signals = process.signals.lock();
        if signals.ending.is_some() || signals.executing.is_some() {
            return Err(Errno::ERESTARTNOINTR);
        }
        signals.executing = Some(thread.id());
        signals.notify_all();
    }
    process.changes.wake_all();
    let alone = process.changes.wait(|| {
        let signals = process.signals.lock();
        if signals.threads.len() == 1 { Some(true) } else { signals.ending.map(|_| false) }
    });
    if !alone {
        return Err(Errno::ERESTARTNOINTR);
    }
    if thread.id() != process.id() {
        let mut family = FAMILY.lock();
        let entry = family.remove_thread(thread.id());
        thread.become_leader();
        if let Some(entry) = entry {
            family.add_thread(entry);
        }
    }
    let mut signals = process.signals.lock();
    signals.executing = None;
    Ok(())
}

/// Gives up the old program and takes the new one.
fn commit(trap: &mut TrapFrame, thread: &Arc<Thread>, prepared: Prepared) {
    let process = thread.process();
    super::robust_list::release(thread);
    process.timers().clear_posix();
    let old = process.set_memory(Some(prepared.memory.clone()));
    drop(task::current().switch_space(prepared.memory.space().clone()));
    exit::release_vfork(thread);
    drop(old);
    reset_thread(thread, &prepared.name);
    reset_process(process);
    if let Some(files) = thread.files() {
        let own = Arc::new(files.clone_table());
        own.close_on_exec();
        thread.set_files(Some(own));
    }
    let task = task::current();
    task.with_fpu(|state| *state = FpuState::new());
    task.set_fs_base(0);
    task.set_gs_base(0);
    *trap = TrapFrame::new_user(prepared.entry, prepared.stack);
}

fn reset_thread(thread: &Thread, name: &[u8]) {
    thread.set_name(name);
    *thread.alternate_stack.lock() = AlternateStack::default();
    *thread.continuation.lock() = None;
    thread.clear_at_exit.store(0, Ordering::Relaxed);
    thread.robust_list.store(0, Ordering::Relaxed);
    super::sequence::forget(thread);
}

fn reset_process(process: &Process) {
    let actions = process.actions().lock().without_handlers();
    process.set_actions(actions);
    process.with_credentials(|credentials| credentials.after_exec());
    process.dumpable.store(u32::from(!process.credentials().are_lent()), Ordering::Relaxed);
    process.executed.store(true, Ordering::Relaxed);
    if let Some(member) = FAMILY.lock().member_mut(process.id()) {
        // Whatever `clone` asked for, the new program's end is announced as usual.
        member.exit_signal = member.exit_signal.map(|_| super::signal::Signal::SIGCHLD);
    }
}

impl Prepared {
    /// For the first program, which has no predecessor.
    pub(super) fn into_parts(self) -> (Arc<UserSpace>, TrapFrame, Vec<u8>) {
        (self.memory, TrapFrame::new_user(self.entry, self.stack), self.name)
    }
}
