//! Resource limits and usage.

use super::time::Timeval;
use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::credentials::{CAP_SYS_RESOURCE, Identity};
use crate::process::limits::{Limit, Resource};
use crate::process::{NANOSECONDS_PER_TICK, Process, Usage, current, find_process, find_thread};
use crate::time;
use alloc::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const RUSAGE_SELF: i32 = 0;
const RUSAGE_CHILDREN: i32 = -1;
const RUSAGE_THREAD: i32 = 1;

/// `struct rusage`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct UsageRecord {
    user: Timeval,
    system: Timeval,
    /// Kilobytes.
    peak_resident: u64,
    unused: [u64; 3],
    minor_faults: u64,
    major_faults: u64,
    /// Swaps, blocks, messages, signals, and switches of both kinds.
    not_counted: [u64; 8],
}

impl UsageRecord {
    pub(super) fn of(usage: &Usage) -> UsageRecord {
        UsageRecord {
            user: Timeval::from_nanoseconds(usage.time.user),
            system: Timeval::from_nanoseconds(usage.time.system),
            peak_resident: usage.peak_pages * 4,
            unused: [0; 3],
            minor_faults: usage.minor_faults,
            major_faults: 0,
            not_counted: [0; 8],
        }
    }
}

/// `getrlimit(resource, result)`.
pub(super) fn getrlimit(arguments: &Arguments) -> Result<usize, Errno> {
    let limit = current().process().limit(Resource::new(arguments[0])?);
    user::write(arguments[1], &limit)?;
    Ok(0)
}

/// `setrlimit(resource, new)`.
pub(super) fn setrlimit(arguments: &Arguments) -> Result<usize, Errno> {
    let resource = Resource::new(arguments[0])?;
    let new = user::read(arguments[1])?;
    set(current().process(), resource, new)?;
    Ok(0)
}

/// `prlimit64(process, resource, new, old)`.
pub(super) fn prlimit64(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, resource, new, old, ..] = *arguments;
    let new = match new {
        0 => None,
        pointer => Some(user::read::<Limit>(pointer)?),
    };
    let own = current().process().clone();
    let process: Arc<Process> = match id as u32 {
        0 => own.clone(),
        id => find_process(id).or_else(|| Some(find_thread(id)?.process().clone())).ok_or(Errno::ESRCH)?,
    };
    check_reach(&own, &process)?;
    let resource = Resource::new(resource)?;
    let before = process.limit(resource);
    if let Some(new) = new {
        set(&process, resource, new)?;
    }
    if old != 0 {
        user::write(old, &before)?;
    }
    Ok(0)
}

/// Whether a process may see and set another's limits: if all ids of that are its real ones, or by privilege.
fn check_reach(own: &Arc<Process>, other: &Arc<Process>) -> Result<(), Errno> {
    if Arc::ptr_eq(own, other) {
        return Ok(());
    }
    let (ours, theirs) = (own.credentials(), other.credentials());
    let is = |ids: Identity, id| [ids.real, ids.effective, ids.saved] == [id; 3];
    let is_same = is(theirs.user, ours.user.real) && is(theirs.group, ours.group.real);
    if is_same || ours.has(CAP_SYS_RESOURCE) { Ok(()) } else { Err(Errno::EPERM) }
}

fn set(process: &Arc<Process>, resource: Resource, new: Limit) -> Result<(), Errno> {
    let privileged = current().process().credentials().has(CAP_SYS_RESOURCE);
    process.with_limits(|limits| limits.set(resource, new, privileged))?;
    process.enforce_limits();
    if resource == Resource::CPU {
        process.timers().watch_limit(process, new);
    }
    Ok(())
}

/// `getrusage(who, result)`.
pub(super) fn getrusage(arguments: &Arguments) -> Result<usize, Errno> {
    let thread = current();
    let usage = match arguments[0] as i32 {
        RUSAGE_SELF => thread.process().usage(),
        RUSAGE_CHILDREN => thread.process().child_usage(),
        RUSAGE_THREAD => thread.usage(),
        _ => return Err(Errno::EINVAL),
    };
    user::write(arguments[1], &UsageRecord::of(&usage))?;
    Ok(0)
}

/// `times(result)`.
pub(super) fn times(arguments: &Arguments) -> Result<usize, Errno> {
    let thread = current();
    let own = thread.process().usage().time;
    let children = thread.process().child_usage().time;
    if arguments[0] != 0 {
        let times = [own.user, own.system, children.user, children.system];
        let ticks = times.map(|nanoseconds| nanoseconds / NANOSECONDS_PER_TICK);
        user::write(arguments[0], &ticks)?;
    }
    Ok((time::now() / NANOSECONDS_PER_TICK) as usize)
}
