//! Changes of the tree: create, link, remove, rename.
//!
//! One sleeping lock for all of them. It makes each change atomic against the others, so that what was
//! checked (the name is free, the directory is empty, a directory does not move below itself) still holds
//! when the change is made. Lookups do not take it.

use super::walk::{Last, Place};
use super::{Access, Caller, Content, Entry, Inode};
use crate::sync::Mutex;
use crate::syscall::Errno;
use alloc::sync::Arc;
use linux_raw_sys::general::{S_ISGID, S_ISVTX};

static CHANGES: Mutex<()> = Mutex::new(());

/// Links that one file may have at most.
const MOST_LINKS: u32 = 65_000;

/// What a rename does about a name that is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Replace,
    Refuse,
    Exchange,
}

/// The name that a change is about; `special` is the error for `.`, `..` and the root.
fn plain_name(place: &Place, special: Errno) -> Result<&[u8], Errno> {
    match &place.last {
        Last::Name(name) => Ok(name),
        Last::Dot | Last::DotDot => Err(special),
    }
}

/// Whether `caller` may change the names in `parent`.
fn check_change(parent: &Entry, caller: &Caller) -> Result<(), Errno> {
    if parent.is_removed() {
        return Err(Errno::ENOENT);
    }
    parent.inode().check(caller, Access::CHANGE)?;
    if parent.inode().filesystem().changeable { Ok(()) } else { Err(Errno::EPERM) }
}

/// In a directory with the sticky bit only the owners of the file and of the directory remove a name.
fn check_sticky(parent: &Entry, entry: &Entry, caller: &Caller) -> Result<(), Errno> {
    let directory = parent.inode().attributes();
    let sticky = directory.permissions & S_ISVTX != 0;
    if sticky && caller.user != directory.owner { entry.inode().check_owner(caller) } else { Ok(()) }
}

/// The entry of `name` in `parent` as it is now, under the lock.
fn current(parent: &Arc<Entry>, name: &[u8]) -> Result<Option<Arc<Entry>>, Errno> {
    Ok(parent.inode().directory()?.find(parent, name))
}

/// A mounted file system's root has its place in another one's directory.
fn is_mount_point(parent: &Entry, entry: &Entry) -> bool {
    !core::ptr::eq(parent.inode().filesystem(), entry.inode().filesystem())
}

/// Creates a file of `content` at `place`. The permissions are taken as given: the mask has been applied.
///
/// EEXIST if the name is taken.
pub(crate) fn create(place: &Place, content: Content, permissions: u32, caller: &Caller) -> Result<Arc<Entry>, Errno> {
    let name = plain_name(place, Errno::EEXIST)?;
    if place.entry.is_some() {
        return Err(Errno::EEXIST);
    }
    if place.slash && !matches!(content, Content::Directory(_)) {
        return Err(Errno::ENOENT);
    }
    let changes = CHANGES.lock();
    if current(&place.parent, name)?.is_some() {
        return Err(Errno::EEXIST);
    }
    check_change(&place.parent, caller)?;
    let parent = place.parent.inode();
    let is_directory = matches!(content, Content::Directory(_));
    let directory = parent.attributes();
    let mut owner = Caller { user: caller.user, group: caller.group, ..Caller::root() };
    let mut permissions = permissions;
    if directory.permissions & S_ISGID != 0 {
        owner.group = directory.group;
        permissions |= if is_directory { S_ISGID } else { 0 };
    }
    let inode = Inode::new(parent.filesystem(), content, permissions, &owner);
    let entry = Entry::new(Some(place.parent.clone()), name, inode);
    place.parent.inode().directory()?.insert(name, entry.clone());
    parent.touch_modified();
    if is_directory {
        parent.change(|attributes| attributes.links += 1);
    }
    drop(changes);
    Ok(entry)
}

/// Gives the file in `target` a further name.
pub(crate) fn link(target: &Arc<Entry>, place: &Place, caller: &Caller) -> Result<(), Errno> {
    let name = plain_name(place, Errno::EEXIST)?;
    let inode = target.inode();
    let _changes = CHANGES.lock();
    if current(&place.parent, name)?.is_some() {
        return Err(Errno::EEXIST);
    }
    if !core::ptr::eq(inode.filesystem(), place.parent.inode().filesystem()) {
        return Err(Errno::EXDEV);
    }
    check_change(&place.parent, caller)?;
    if inode.is_directory() {
        return Err(Errno::EPERM);
    }
    let links = inode.attributes().links;
    if links == 0 {
        return Err(Errno::ENOENT);
    }
    if links >= MOST_LINKS {
        return Err(Errno::EMLINK);
    }
    let entry = Entry::new(Some(place.parent.clone()), name, inode.clone());
    place.parent.inode().directory()?.insert(name, entry);
    inode.change(|attributes| attributes.links += 1);
    place.parent.inode().touch_modified();
    Ok(())
}

/// Removes a name of something that is not a directory.
pub(crate) fn unlink(place: &Place, caller: &Caller) -> Result<(), Errno> {
    let name = plain_name(place, Errno::EISDIR)?;
    let changes = CHANGES.lock();
    let entry = current(&place.parent, name)?.ok_or(Errno::ENOENT)?;
    if place.slash {
        return Err(if entry.inode().is_directory() { Errno::EISDIR } else { Errno::ENOTDIR });
    }
    check_change(&place.parent, caller)?;
    check_sticky(&place.parent, &entry, caller)?;
    if entry.inode().is_directory() {
        return Err(Errno::EISDIR);
    }
    take_out(&place.parent, name, &entry)?;
    drop(changes);
    Ok(())
}

/// Removes an empty directory.
pub(crate) fn remove_directory(place: &Place, caller: &Caller) -> Result<(), Errno> {
    let special = match place.last {
        Last::DotDot => Errno::ENOTEMPTY,
        _ if place.parent.parent().is_none() && place.entry.is_some() => Errno::EBUSY,
        _ => Errno::EINVAL,
    };
    let name = plain_name(place, special)?;
    let changes = CHANGES.lock();
    let entry = current(&place.parent, name)?.ok_or(Errno::ENOENT)?;
    check_change(&place.parent, caller)?;
    check_sticky(&place.parent, &entry, caller)?;
    let directory = entry.inode().directory()?;
    if is_mount_point(&place.parent, &entry) {
        return Err(Errno::EBUSY);
    }
    if !directory.is_empty() {
        return Err(Errno::ENOTEMPTY);
    }
    take_out(&place.parent, name, &entry)?;
    drop(changes);
    Ok(())
}

/// Takes `entry` out of `parent` and counts the name off. Under the lock.
fn take_out(parent: &Arc<Entry>, name: &[u8], entry: &Arc<Entry>) -> Result<(), Errno> {
    parent.inode().directory()?.remove(name);
    parent.inode().touch_modified();
    forget_name(parent, entry);
    Ok(())
}

/// Counts a name off that is no longer in `parent`.
fn forget_name(parent: &Entry, entry: &Entry) {
    entry.mark_removed();
    if entry.inode().is_directory() {
        entry.inode().change(|attributes| attributes.links = 0);
        parent.inode().change(|attributes| attributes.links -= 1);
    } else {
        entry.inode().change(|attributes| attributes.links -= 1);
    }
}

/// Moves what is at `from` to `to`.
pub(crate) fn rename(from: &Place, to: &Place, taken: Taken, caller: &Caller) -> Result<(), Errno> {
    let from_name = plain_name(from, Errno::EBUSY)?;
    let to_special = if taken == Taken::Refuse { Errno::EEXIST } else { Errno::EBUSY };
    let to_name = plain_name(to, to_special)?;
    let changes = CHANGES.lock();
    if !core::ptr::eq(from.parent.inode().filesystem(), to.parent.inode().filesystem()) {
        return Err(Errno::EXDEV);
    }
    let moving = current(&from.parent, from_name)?.ok_or(Errno::ENOENT)?;
    let target = current(&to.parent, to_name)?;
    match (&target, taken) {
        (Some(_), Taken::Refuse) => return Err(Errno::EEXIST),
        (None, Taken::Exchange) => return Err(Errno::ENOENT),
        _ => {}
    }
    if (from.slash || (to.slash && taken != Taken::Exchange)) && !moving.inode().is_directory() {
        return Err(Errno::ENOTDIR);
    }
    if to.parent.is_below(&moving) {
        return Err(Errno::EINVAL);
    }
    if let Some(target) = &target
        && from.parent.is_below(target)
    {
        return Err(if taken == Taken::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
    }
    if target.as_ref().is_some_and(|target| Arc::ptr_eq(target.inode(), moving.inode())) {
        return Ok(());
    }
    check_change(&from.parent, caller)?;
    check_sticky(&from.parent, &moving, caller)?;
    check_change(&to.parent, caller)?;
    let mount_point = is_mount_point(&from.parent, &moving);
    if let Some(target) = &target {
        check_sticky(&to.parent, target, caller)?;
        if taken == Taken::Replace {
            check_replace(&moving, target)?;
        }
    }
    if mount_point || target.as_ref().is_some_and(|target| is_mount_point(&to.parent, target)) {
        return Err(Errno::EBUSY);
    }
    let replaced = match (target, taken) {
        (Some(target), Taken::Exchange) => {
            place_at(&target, &to.parent, &from.parent, from_name)?;
            place_at(&moving, &from.parent, &to.parent, to_name)?;
            None
        }
        (target, _) => {
            from.parent.inode().directory()?.remove(from_name);
            place_at(&moving, &from.parent, &to.parent, to_name)?;
            target.inspect(|target| forget_name(&to.parent, target))
        }
    };
    for parent in [&from.parent, &to.parent] {
        parent.inode().touch_modified();
    }
    moving.inode().change(|_| ());
    drop(changes);
    drop(replaced);
    Ok(())
}

/// Whether `moving` may take the place of `target`.
fn check_replace(moving: &Entry, target: &Entry) -> Result<(), Errno> {
    match (moving.inode().is_directory(), target.directory()) {
        (true, None) => Err(Errno::ENOTDIR),
        (false, Some(_)) => Err(Errno::EISDIR),
        (true, Some(directory)) if !directory.is_empty() => Err(Errno::ENOTEMPTY),
        _ => Ok(()),
    }
}

/// Puts `entry` under its new name; the old one has been dealt with. A moved directory's `..` counts as a
/// link of its parent.
fn place_at(entry: &Arc<Entry>, former: &Arc<Entry>, parent: &Arc<Entry>, name: &[u8]) -> Result<(), Errno> {
    entry.move_to(parent.clone(), name);
    parent.inode().directory()?.insert(name, entry.clone());
    if entry.inode().is_directory() && !Arc::ptr_eq(former, parent) {
        former.inode().change(|attributes| attributes.links -= 1);
        parent.inode().change(|attributes| attributes.links += 1);
    }
    Ok(())
}

/// Puts the root of a file system in the place of the directory `covered`, which keeps its name and parent.
pub(super) fn mount(covered: &Arc<Entry>, inode: Arc<Inode>) -> Result<Arc<Entry>, Errno> {
    let _changes = CHANGES.lock();
    let parent = covered.parent().ok_or(Errno::EBUSY)?;
    let name = covered.name();
    let root = Entry::new(Some(parent.clone()), &name, inode);
    parent.inode().directory()?.insert(&name, root.clone());
    Ok(root)
}
