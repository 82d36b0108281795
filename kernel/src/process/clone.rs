//! Making threads and processes: `clone`, `clone3`, `fork`, `vfork`.

use super::credentials::{CAP_SYS_ADMIN, CAP_SYS_RESOURCE};
use super::family::{FAMILY, Family, Member, REAPER};
use super::limits::{INFINITY, Resource};
use super::signal::{AlternateStack, Signal, notify};
use super::thread::Template;
use super::thread_group::Inherited;
use super::{Process, Thread, UserSpace, current};
use crate::arch::TrapFrame;
use crate::cpu;
use crate::files::ProcessFile;
use crate::memory::user;
use crate::sync::InterruptLock;
use crate::syscall::Errno;
use crate::task::{self, Class, Task};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

bitflags::bitflags! {
    /// Flags of `clone` and `clone3`, with Linux's values.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct CloneFlags: u64 {
        /// Share the address space.
        const VM = 0x100;
        /// Share working directory, root and umask.
        const FS = 0x200;
        /// Share open files.
        const FILES = 0x400;
        /// Share the table of signal actions.
        const SIGHAND = 0x800;
        /// Give the parent a descriptor of the child.
        const PIDFD = 0x1000;
        /// Let a tracer follow. Nothing traces here.
        const PTRACE = 0x2000;
        /// Hold the parent until the child lets go of its memory.
        const VFORK = 0x4000;
        /// Be a sibling, not a child.
        const PARENT = 0x8000;
        /// Be a thread of the same process.
        const THREAD = 0x1_0000;
        /// Share System V semaphore adjustments, of which there are none.
        const SYSVSEM = 0x4_0000;
        /// Set the thread's `fs` base.
        const SETTLS = 0x8_0000;
        /// Store the id for the parent.
        const PARENT_SETTID = 0x10_0000;
        /// Clear a word and wake a futex at the end.
        const CHILD_CLEARTID = 0x20_0000;
        /// Means nothing any more.
        const DETACHED = 0x40_0000;
        /// Cannot be traced.
        const UNTRACED = 0x80_0000;
        /// Store the id for the child.
        const CHILD_SETTID = 0x100_0000;
        /// Share the input and output scheduler's context, of which there is none.
        const IO = 0x8000_0000;
        /// Start without handlers (`clone3`).
        const CLEAR_SIGHAND = 0x1_0000_0000;
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    /// What is shared and stored.
    pub(crate) flags: CloneFlags,
    /// Initial `rsp`; 0 keeps the parent's.
    pub(crate) stack: u64,
    /// `fs` base for SETTLS.
    pub(crate) thread_pointer: u64,
    /// Where PARENT_SETTID stores.
    pub(crate) parent_word: u64,
    /// Where PIDFD stores.
    pub(crate) descriptor_word: u64,
    /// Where CHILD_SETTID stores and CHILD_CLEARTID clears.
    pub(crate) child_word: u64,
    /// Sent to the parent at the end.
    pub(crate) exit_signal: Option<Signal>,
}

/// Holds the parent of a vfork child until the child lets go of its memory.
pub(super) struct Release {
    done: AtomicBool,
    parent: Arc<Process>,
}

impl Release {
    fn new(parent: Arc<Process>) -> Arc<Release> {
        Arc::new(Release { done: AtomicBool::new(false), parent })
    }

    /// Lets the parent go on.
    pub(super) fn complete(&self) {
        self.done.store(true, Ordering::Release);
        self.parent.changes.wake_all();
    }

    /// Waits for the child; only the end of the parent (or its `execve` in another thread) cuts it short.
    fn wait(&self) {
        self.parent.changes.wait(|| {
            let signals = self.parent.signals.lock();
            let leaving = signals.ending.is_some() || signals.executing.is_some();
            (self.done.load(Ordering::Acquire) || leaving).then_some(())
        });
    }
}

/// Makes the thread or process. Returns its id.
///
/// # Errors
/// EINVAL for flags that contradict each other, EAGAIN without free ids, ENOMEM, EFAULT.
pub(crate) fn clone(trap: &TrapFrame, request: Request) -> Result<u32, Errno> {
    check(&request)?;
    let parent = current();
    check_count(&parent)?;
    let id = FAMILY.lock().allocate_id().ok_or(Errno::EAGAIN)?;
    let vfork = request.flags.contains(CloneFlags::VFORK);
    let release = vfork.then(|| Release::new(parent.process().clone()));
    let thread = if request.flags.contains(CloneFlags::THREAD) {
        Thread::new(id, parent.process().clone(), template(&parent, &request, release.clone())?)
    } else {
        let process = new_process(&parent, id, request.flags)?;
        Thread::new(id, process, template(&parent, &request, release.clone())?)
    };
    let task = new_task(trap, &parent, &thread, &request)?;
    if request.flags.contains(CloneFlags::VM) && !vfork {
        part_memory(&parent);
    }
    let descriptor = request.flags.contains(CloneFlags::PIDFD).then(|| give_descriptor(&parent, &thread, &request));
    let descriptor = descriptor.transpose()?;
    store_ids(&thread, &request);
    publish(&parent, &thread, &request).inspect_err(|_| take_back(&parent, descriptor))?;
    task.start();
    if let Some(release) = release {
        release.wait();
    }
    Ok(id)
}

fn check(request: &Request) -> Result<(), Errno> {
    let flags = request.flags;
    let needs = |flag, other| !flags.contains(flag) || flags.contains(other);
    let consistent = needs(CloneFlags::SIGHAND, CloneFlags::VM)
        && needs(CloneFlags::THREAD, CloneFlags::SIGHAND)
        && !flags.contains(CloneFlags::SIGHAND | CloneFlags::CLEAR_SIGHAND)
        && !(flags.contains(CloneFlags::PIDFD) && flags.intersects(CloneFlags::DETACHED | CloneFlags::THREAD));
    if consistent { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Whether the user may have one task more. Root and its deputies are not counted.
///
/// # Errors
/// EAGAIN.
fn check_count(parent: &Thread) -> Result<(), Errno> {
    let credentials = parent.process().credentials();
    let user = credentials.user.real;
    if user == 0 || credentials.has(CAP_SYS_RESOURCE) || credentials.has(CAP_SYS_ADMIN) {
        return Ok(());
    }
    let most = parent.process().limit(Resource::NPROC).soft;
    let family = FAMILY.lock();
    let of_user = family.members().filter(|member| member.process.credentials().user.real == user);
    // One that has ended counts until somebody has waited for it.
    let count: usize = of_user.map(|member| member.process.thread_count().max(1)).sum();
    if (count as u64) < most { Ok(()) } else { Err(Errno::EAGAIN) }
}

/// From its second thread on a program's CPUs have upper page tables of their own. (Who waits until the other one is gone has no second.)
fn part_memory(parent: &Thread) {
    if let Some(memory) = parent.process().memory() {
        // If there is no room for them, all CPUs go on with the same.
        let _ = memory.space().part(cpu::count());
    }
}

fn new_process(parent: &Thread, id: u32, flags: CloneFlags) -> Result<Arc<Process>, Errno> {
    let process = parent.process();
    let memory = process.memory().ok_or(Errno::ESRCH)?;
    let memory: Arc<UserSpace> =
        if flags.contains(CloneFlags::VM) { memory } else { memory.fork().map_err(Errno::from)? };
    let actions = if flags.contains(CloneFlags::SIGHAND) {
        process.actions()
    } else {
        let actions = process.actions().lock().clone();
        let cleared = flags.contains(CloneFlags::CLEAR_SIGHAND);
        Arc::new(InterruptLock::new(if cleared { actions.without_handlers() } else { actions }))
    };
    let child = Process::new(
        id,
        Inherited {
            actions,
            memory,
            credentials: process.credentials(),
            limits: process.limits(),
            personality: process.personality.load(Ordering::Relaxed),
            dumpable: process.dumpable.load(Ordering::Relaxed),
            out_of_memory_adjustment: process.out_of_memory_adjustment(),
        },
    );
    let limit = process.limit(Resource::CPU);
    if limit.soft != INFINITY {
        child.timers().watch_limit(&child, limit);
    }
    Ok(child)
}

fn template(parent: &Thread, request: &Request, vfork: Option<Arc<Release>>) -> Result<Template, Errno> {
    let flags = request.flags;
    let files = parent.files().ok_or(Errno::ESRCH)?;
    let context = parent.context().ok_or(Errno::ESRCH)?;
    // A new stack makes the parent's alternate stack useless, unless memory is a copy or the parent waits.
    let keeps_stack = !flags.contains(CloneFlags::VM) || flags.contains(CloneFlags::VFORK);
    Ok(Template {
        name: parent.name(),
        files: if flags.contains(CloneFlags::FILES) { files } else { Arc::new(files.clone_table()) },
        context: if flags.contains(CloneFlags::FS) { context } else { Arc::new(context.duplicate()) },
        blocked: parent.blocked(),
        alternate_stack: if keeps_stack { *parent.alternate_stack.lock() } else { AlternateStack::default() },
        clear_at_exit: if flags.contains(CloneFlags::CHILD_CLEARTID) { request.child_word } else { 0 },
        // Two threads cannot share one `struct rseq`; a copy of the memory has its own.
        sequence: if flags.contains(CloneFlags::VM) { None } else { *parent.sequence.lock() },
        vfork,
        no_new_privileges: parent.no_new_privileges.load(Ordering::Relaxed),
    })
}

fn new_task(
    trap: &TrapFrame,
    parent: &Thread,
    thread: &Arc<Thread>,
    request: &Request,
) -> Result<Arc<Task>, Errno> {
    let mut frame = *trap;
    frame.rax = 0;
    if request.stack != 0 {
        frame.rsp = request.stack;
    }
    let memory = thread.process().memory().ok_or(Errno::ESRCH)?;
    let task = Task::new_user(frame, thread.clone(), memory.space().clone()).map_err(|_| Errno::ENOMEM)?;
    task.inherit_user_state();
    if request.flags.contains(CloneFlags::SETTLS) {
        task.set_fs_base(request.thread_pointer);
    }
    if parent.resets_schedule.load(Ordering::Relaxed) {
        task::set_class(&task, Class::DEFAULT);
    }
    task.watch_sequence(thread.sequence.lock().is_some());
    thread.set_task(&task);
    Ok(task)
}

/// Gives the parent a descriptor of the child, and says which. The child's table has been copied by now, if it has one of its own.
///
/// # Errors
/// EMFILE, EFAULT; the parent has none then.
fn give_descriptor(parent: &Thread, child: &Thread, request: &Request) -> Result<i32, Errno> {
    let table = parent.files().ok_or(Errno::ESRCH)?;
    let limit = usize::try_from(parent.process().limit(Resource::NOFILE).soft).unwrap_or(usize::MAX);
    let descriptor = table.insert(ProcessFile::open(child.process().clone(), 0), true, 0, limit)?;
    user::write(request.descriptor_word, &descriptor).inspect_err(|_| take_back(parent, Some(descriptor)))?;
    Ok(descriptor)
}

fn take_back(parent: &Thread, descriptor: Option<i32>) {
    if let (Some(table), Some(descriptor)) = (parent.files(), descriptor) {
        drop(table.remove(descriptor));
    }
}

/// Stores the id where the flags say. A bad address is the program's own loss, as on Linux.
fn store_ids(thread: &Thread, request: &Request) {
    if request.flags.contains(CloneFlags::PARENT_SETTID) {
        let _ = user::write(request.parent_word, &thread.id());
    }
    if request.flags.contains(CloneFlags::CHILD_SETTID)
        && let Some(memory) = thread.process().memory()
    {
        let _ = memory.space().write_user(request.child_word, &thread.id().to_le_bytes());
    }
}

/// Gives the current thread its own copy of what `flags` names.
///
/// # Errors
/// ESRCH if it is ending.
pub(crate) fn unshare(flags: CloneFlags) -> Result<(), Errno> {
    let thread = current();
    if flags.contains(CloneFlags::FILES) {
        let files = thread.files().ok_or(Errno::ESRCH)?;
        thread.set_files(Some(Arc::new(files.clone_table())));
    }
    if flags.contains(CloneFlags::FS) {
        let context = thread.context().ok_or(Errno::ESRCH)?;
        thread.set_context(Some(Arc::new(context.duplicate())));
    }
    Ok(())
}

/// Makes it known: from here on it can be found, signalled and waited for.
///
/// # Errors
/// ERESTARTNOINTR if the process is ending or about to be replaced: the call is then never finished.
fn publish(parent: &Thread, thread: &Arc<Thread>, request: &Request) -> Result<(), Errno> {
    let process = thread.process();
    let mut family = FAMILY.lock();
    let mut signals = process.signals.lock();
    if signals.ending.is_some() || signals.executing.is_some() {
        return Err(Errno::ERESTARTNOINTR);
    }
    signals.threads.push(thread.clone());
    if signals.stop.is_some() {
        notify(thread);
    }
    drop(signals);
    if !request.flags.contains(CloneFlags::THREAD) {
        let member = new_member(&family, parent, process, request);
        family.add(member);
    }
    family.add_thread(thread.clone());
    Ok(())
}

fn new_member(family: &Family, parent: &Thread, process: &Arc<Process>, request: &Request) -> Member {
    let id = parent.process().id();
    let relations =
        family.member(id).map(|member| (member.group, member.session, member.parent, member.exit_signal));
    // A process that runs is a member; the fallback only keeps this free of panics.
    let (group, session, grandparent, own_signal) = relations.unwrap_or((id, id, REAPER, None));
    let sibling = request.flags.contains(CloneFlags::PARENT);
    Member {
        process: process.clone(),
        parent: if sibling { grandparent } else { id },
        children: Vec::new(),
        group,
        session,
        exit_signal: if sibling { own_signal } else { request.exit_signal },
        change: None,
        ended: None,
    }
}
