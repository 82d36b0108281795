//! The program that the machine was booted for.
//!
//! The initial archive names it, as `protocol::orders` says. It is process 2, leads a group in the kernel's
//! own session as a shell's job would, and has the console as its standard files.

use super::credentials::Credentials;
use super::execute;
use super::exit::MAIN;
use super::family::{FAMILY, Member, REAPER};
use super::initial_stack::Arguments;
use super::limits::Limits;
use super::signal::{Actions, AlternateStack, SignalSet};
use super::strings::Strings;
use super::thread::Template;
use super::thread_group::Inherited;
use super::{ExitStatus, Process, Thread};
use crate::files::{self, Caller, Context};
use crate::report;
use crate::sync::InterruptLock;
use crate::syscall::Errno;
use crate::task::Task;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use protocol::orders;
use protocol::report::Exit;

/// What a shell gives for a program that is there but cannot be executed, and for one that is not there.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Starts the main program. If that fails the machine reports an exit status as a shell would, and stops.
pub(crate) fn start_init() {
    let context = Arc::new(Context::new(files::root().clone()));
    let arguments = strings(&context, orders::ARGUMENTS);
    let path = arguments.first().cloned().unwrap_or_default();
    if let Err(error) = start(context, path.clone(), arguments) {
        log::error!("cannot start {}: {error:?}", String::from_utf8_lossy(&path));
        let code = if error == Errno::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE };
        main_program_ended(ExitStatus::Exited(code));
    }
}

fn start(context: Arc<Context>, path: Vec<u8>, arguments: Vec<Vec<u8>>) -> Result<(), Errno> {
    if let Some(directory) = strings(&context, orders::DIRECTORY).into_iter().next() {
        context.set_working(files::find(&context, &Caller::root(), &directory)?);
    }
    let environment = strings(&context, orders::ENVIRONMENT);
    let program = files::open_executable(&context, &Caller::root(), &path)?;
    let find = |path: &[u8]| files::open_executable(&context, &Caller::root(), path);
    let arguments = Arguments { arguments: list(&arguments)?, environment: list(&environment)? };
    let limits = Limits::new();
    let credentials = Credentials::root();
    let prepared = execute::prepare(&credentials, &limits, program, &path, arguments, &find)?;
    let (memory, frame, name) = prepared.into_parts();
    let id = FAMILY.lock().allocate_id().ok_or(Errno::EAGAIN)?;
    let space = memory.space().clone();
    let inherited = Inherited {
        actions: Arc::new(InterruptLock::new(Actions::new())),
        memory,
        credentials,
        limits,
        personality: 0,
        dumpable: 1,
        out_of_memory_adjustment: 0,
    };
    let process = Process::new(id, inherited);
    let thread = Thread::new(id, process.clone(), first_thread(&context));
    thread.set_name(&name);
    let task = Task::new_user(frame, thread.clone(), space).map_err(|_| Errno::ENOMEM)?;
    thread.set_task(&task);
    publish(&process, &thread);
    MAIN.set(id);
    report::program_starts();
    task.start();
    Ok(())
}

fn list(strings: &[Vec<u8>]) -> Result<Strings, Errno> {
    let mut list = Strings::default();
    for string in strings {
        list.push(string)?;
    }
    Ok(list)
}

fn first_thread(context: &Arc<Context>) -> Template {
    Template {
        name: [0; super::NAME_SIZE],
        files: files::initial_table(),
        context: context.clone(),
        blocked: SignalSet::EMPTY,
        alternate_stack: AlternateStack::default(),
        clear_at_exit: 0,
        sequence: None,
        vfork: None,
        no_new_privileges: false,
    }
}

fn publish(process: &Arc<Process>, thread: &Arc<Thread>) {
    let id = process.id();
    let mut family = FAMILY.lock();
    family.add(Member {
        process: process.clone(),
        parent: REAPER,
        children: Vec::new(),
        group: id,
        session: REAPER,
        exit_signal: None,
        change: None,
        ended: None,
    });
    family.add_thread(thread.clone());
    process.signals.lock().threads.push(thread.clone());
}

/// The strings in a file of the archive; none if it is not there.
fn strings(context: &Context, path: &str) -> Vec<Vec<u8>> {
    let Ok(entry) = files::find(context, &Caller::root(), path.as_bytes()) else { return Vec::new() };
    let Ok(content) = entry.inode().regular() else { return Vec::new() };
    let mut bytes = alloc::vec![0; content.size() as usize];
    let length = content.read_at(0, &mut bytes);
    bytes.truncate(length);
    let mut list: Vec<Vec<u8>> = bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    // What follows the last NUL is no string unless somebody forgot that NUL.
    if list.last().is_some_and(Vec::is_empty) {
        list.pop();
    }
    list
}

/// The main program has ended: what it has written is made to last; then report and power off.
pub(super) fn main_program_ended(status: ExitStatus) -> ! {
    files::synchronize_disks();
    report::finish(match status {
        ExitStatus::Exited(code) => Exit::Code(code),
        ExitStatus::Killed(signal) | ExitStatus::Dumped(signal) => Exit::Signal(signal.number()),
    })
}
