//! Process groups and sessions: `setpgid` and `setsid`.

use super::current;
use super::family::FAMILY;
use crate::syscall::Errno;
use core::sync::atomic::Ordering;

/// Puts process `id` (0: the caller) into `group` (0: one of its own id).
///
/// # Errors
/// As `setpgid`: ESRCH if it is neither the caller nor its child, EACCES if the child has executed a program,
/// EPERM if it leads a session or the group is not of the caller's session.
pub(crate) fn set_group(id: u32, group: u32) -> Result<(), Errno> {
    let caller = current().process().id();
    let id = if id == 0 { caller } else { id };
    let group = if group == 0 { id } else { group };
    let mut family = FAMILY.lock();
    let own_session = family.member(caller).ok_or(Errno::ESRCH)?.session;
    let member = family.member(id).filter(|member| member.ended.is_none()).ok_or(Errno::ESRCH)?;
    if id != caller {
        if member.parent != caller {
            return Err(Errno::ESRCH);
        }
        if member.session != own_session {
            return Err(Errno::EPERM);
        }
        if member.process.executed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES);
        }
    }
    if member.session == id {
        return Err(Errno::EPERM);
    }
    let exists = group == id || family.members().any(|one| one.group == group && one.session == own_session);
    if !exists {
        return Err(Errno::EPERM);
    }
    if let Some(member) = family.member_mut(id) {
        member.group = group;
    }
    Ok(())
}

/// Makes the caller the leader of a new session and a new group. Returns the session's id.
///
/// # Errors
/// EPERM if it leads a group already.
pub(crate) fn new_session() -> Result<u32, Errno> {
    let caller = current().process().id();
    let mut family = FAMILY.lock();
    if family.members().any(|member| member.group == caller) {
        return Err(Errno::EPERM);
    }
    let member = family.member_mut(caller).ok_or(Errno::ESRCH)?;
    member.group = caller;
    member.session = caller;
    Ok(caller)
}
