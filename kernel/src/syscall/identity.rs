//! User and group ids, capabilities.

use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::credentials::{ALL_CAPABILITIES, CAP_SETGID, CAP_SETPCAP, GROUPS_MAX, Identity};
use crate::process::{current, find_process};
use zerocopy::IntoBytes;

/// `_LINUX_CAPABILITY_VERSION_1` to `_3`; the first has 32 capabilities, the others 64.
const VERSIONS: [u32; 3] = [0x1998_0330, 0x2007_1026, 0x2008_0522];

fn user_ids() -> Identity {
    current().process().credentials().user
}

fn group_ids() -> Identity {
    current().process().credentials().group
}

/// `getuid()`.
pub(super) fn getuid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(user_ids().real as usize)
}

/// `geteuid()`.
pub(super) fn geteuid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(user_ids().effective as usize)
}

/// `getgid()`.
pub(super) fn getgid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(group_ids().real as usize)
}

/// `getegid()`.
pub(super) fn getegid(_arguments: &Arguments) -> Result<usize, Errno> {
    Ok(group_ids().effective as usize)
}

/// `getresuid(real, effective, saved)`.
pub(super) fn getresuid(arguments: &Arguments) -> Result<usize, Errno> {
    write_three(arguments, user_ids())
}

/// `getresgid(real, effective, saved)`.
pub(super) fn getresgid(arguments: &Arguments) -> Result<usize, Errno> {
    write_three(arguments, group_ids())
}

fn write_three(arguments: &Arguments, identity: Identity) -> Result<usize, Errno> {
    for (pointer, id) in arguments.iter().zip([identity.real, identity.effective, identity.saved]) {
        user::write(*pointer, &id)?;
    }
    Ok(0)
}

fn change_user(change: impl FnOnce(&mut Identity, bool) -> Result<(), Errno>) -> Result<usize, Errno> {
    current().process().with_credentials(|credentials| credentials.change_user(change))?;
    Ok(0)
}

fn change_group(change: impl FnOnce(&mut Identity, bool) -> Result<(), Errno>) -> Result<usize, Errno> {
    current().process().with_credentials(|credentials| {
        let privileged = credentials.has(CAP_SETGID);
        change(&mut credentials.group, privileged)
    })?;
    Ok(0)
}

/// `setuid(id)`.
pub(super) fn setuid(arguments: &Arguments) -> Result<usize, Errno> {
    change_user(|user, privileged| user.set(arguments[0] as u32, privileged))
}

/// `setgid(id)`.
pub(super) fn setgid(arguments: &Arguments) -> Result<usize, Errno> {
    change_group(|group, privileged| group.set(arguments[0] as u32, privileged))
}

/// `setreuid(real, effective)`.
pub(super) fn setreuid(arguments: &Arguments) -> Result<usize, Errno> {
    let [real, effective, ..] = *arguments;
    change_user(|user, privileged| user.set_real_effective(real as u32, effective as u32, privileged))
}

/// `setregid(real, effective)`.
pub(super) fn setregid(arguments: &Arguments) -> Result<usize, Errno> {
    let [real, effective, ..] = *arguments;
    change_group(|group, privileged| group.set_real_effective(real as u32, effective as u32, privileged))
}

/// `setresuid(real, effective, saved)`.
pub(super) fn setresuid(arguments: &Arguments) -> Result<usize, Errno> {
    change_user(|user, privileged| user.set_all(three(arguments), privileged))
}

/// `setresgid(real, effective, saved)`.
pub(super) fn setresgid(arguments: &Arguments) -> Result<usize, Errno> {
    change_group(|group, privileged| group.set_all(three(arguments), privileged))
}

fn three(arguments: &Arguments) -> [u32; 3] {
    [arguments[0] as u32, arguments[1] as u32, arguments[2] as u32]
}

/// `setfsuid(id)`.
pub(super) fn setfsuid(arguments: &Arguments) -> Result<usize, Errno> {
    let mut old = 0;
    change_user(|user, privileged| {
        old = user.set_file_system(arguments[0] as u32, privileged);
        Ok(())
    })?;
    Ok(old as usize)
}

/// `setfsgid(id)`.
pub(super) fn setfsgid(arguments: &Arguments) -> Result<usize, Errno> {
    let mut old = 0;
    change_group(|group, privileged| {
        old = group.set_file_system(arguments[0] as u32, privileged);
        Ok(())
    })?;
    Ok(old as usize)
}

/// `getgroups(count, list)`.
pub(super) fn getgroups(arguments: &Arguments) -> Result<usize, Errno> {
    let count = usize::try_from(arguments[0] as i32).map_err(|_| Errno::EINVAL)?;
    let groups = current().process().credentials().groups;
    if count == 0 {
        return Ok(groups.len());
    }
    if count < groups.len() {
        return Err(Errno::EINVAL);
    }
    user::write_bytes(arguments[1], groups.as_slice().as_bytes())?;
    Ok(groups.len())
}

/// `setgroups(count, list)`.
pub(super) fn setgroups(arguments: &Arguments) -> Result<usize, Errno> {
    let process = current().process().clone();
    if !process.credentials().has(CAP_SETGID) {
        return Err(Errno::EPERM);
    }
    let count = arguments[0] as u32 as usize;
    if count > GROUPS_MAX {
        return Err(Errno::EINVAL);
    }
    let mut groups = alloc::vec![0u32; count];
    user::read_bytes(arguments[1], groups.as_mut_slice().as_mut_bytes())?;
    groups.sort_unstable();
    process.with_credentials(|credentials| credentials.groups = groups);
    Ok(0)
}

/// Reads the header of `capget` and `capset`: how many words each set has, and the process.
fn capability_header(pointer: u64) -> Result<(usize, u32), Errno> {
    let [version, id]: [u32; 2] = user::read(pointer)?;
    let words = match VERSIONS.iter().position(|known| *known == version) {
        Some(0) => 1,
        Some(_) => 2,
        None => {
            user::write(pointer, &VERSIONS[2])?;
            return Err(Errno::EINVAL);
        }
    };
    Ok((words, id))
}

/// `capget(header, data)`.
pub(super) fn capget(arguments: &Arguments) -> Result<usize, Errno> {
    let header = capability_header(arguments[0]);
    if arguments[1] == 0 {
        // Only the version was asked for.
        return if header == Err(Errno::EINVAL) { Ok(0) } else { header.map(|_| 0) };
    }
    let (words, id) = header?;
    if (id as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let process = if id == 0 { current().process().clone() } else { find_process(id).ok_or(Errno::ESRCH)? };
    let sets = process.credentials().capabilities;
    for word in 0..words {
        let part = |set: u64| (set >> (32 * word)) as u32;
        let record = [part(sets.effective), part(sets.permitted), part(sets.inheritable)];
        user::write(arguments[1] + 12 * word as u64, &record)?;
    }
    Ok(0)
}

/// `capset(header, data)`.
pub(super) fn capset(arguments: &Arguments) -> Result<usize, Errno> {
    let (words, id) = capability_header(arguments[0])?;
    let process = current().process().clone();
    if id != 0 && id != process.id() {
        return Err(Errno::EPERM);
    }
    let mut sets = [0u64; 3];
    for word in 0..words {
        let record: [u32; 3] = user::read(arguments[1].wrapping_add(12 * word as u64))?;
        for (set, part) in sets.iter_mut().zip(record) {
            *set |= u64::from(part) << (32 * word);
        }
    }
    let [effective, permitted, inheritable] = sets.map(|set| set & ALL_CAPABILITIES);
    process.with_credentials(|credentials| {
        let may_set = credentials.has(CAP_SETPCAP);
        let old = &mut credentials.capabilities;
        let inheritable_limit = if may_set { old.bounding } else { old.permitted };
        let allowed = permitted & !old.permitted == 0
            && effective & !permitted == 0
            && inheritable & !(old.inheritable | inheritable_limit) == 0;
        if !allowed {
            return Err(Errno::EPERM);
        }
        old.effective = effective;
        old.permitted = permitted;
        old.inheritable = inheritable;
        Ok(0)
    })
}
