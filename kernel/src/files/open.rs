//! Opening: from a place in the tree to a description.

use super::content::RegularFile;
use super::file::{File, Patience, Positions};
use super::generated::GeneratedFile;
use super::walk::{Place, Walk};
use super::{Access, Caller, Content, Context, Description, Entry, FileContent, FileSystem, Inode, tree};
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;

/// Opens `path` with the flags of `open(2)`; `permissions` are those of a file that is made, before the mask.
pub(crate) fn open(walk: &Walk, path: &[u8], flags: u32, permissions: u32) -> Result<Arc<Description>, Errno> {
    let exclusive = abi::O_CREAT | abi::O_EXCL;
    let follow = flags & abi::O_NOFOLLOW == 0 && flags & exclusive != exclusive;
    let walk = walk.clone().follow_last(follow);
    let place = walk.place(path)?;
    let created = flags & abi::O_CREAT != 0 && flags & abi::O_PATH == 0;
    let (entry, is_new) = if created { create(&place, flags, permissions, walk.caller())? } else { (place.existing()?, false) };
    open_entry(&entry, flags, walk.caller(), is_new)
}

/// What O_CREAT finds or makes.
fn create(place: &Place, flags: u32, permissions: u32, caller: &Caller) -> Result<(Arc<Entry>, bool), Errno> {
    if flags & abi::O_DIRECTORY != 0 {
        return Err(Errno::EINVAL);
    }
    match &place.entry {
        Some(_) if flags & abi::O_EXCL != 0 => Err(Errno::EEXIST),
        Some(entry) if entry.inode().is_directory() => Err(Errno::EISDIR),
        Some(entry) => Ok((entry.clone(), false)),
        None if place.slash => Err(Errno::EISDIR),
        None => {
            let content = Content::Regular(FileContent::empty());
            match tree::create(place, content, permissions, caller) {
                // Somebody else made it in between.
                Err(Errno::EEXIST) if flags & abi::O_EXCL == 0 => {
                    let found = place.parent.inode().directory()?;
                    let super::walk::Last::Name(name) = &place.last else { return Err(Errno::EISDIR) };
                    let entry = found.find(&place.parent, name).ok_or(Errno::ENOENT)?;
                    Ok((entry, false))
                }
                made => Ok((made?, true)),
            }
        }
    }
}

/// Opens what is there. A file that this opening has just made is not checked for permissions.
pub(crate) fn open_entry(
    entry: &Arc<Entry>,
    flags: u32,
    caller: &Caller,
    is_new: bool,
) -> Result<Arc<Description>, Errno> {
    let inode = entry.inode();
    if flags & abi::O_DIRECTORY != 0 {
        inode.directory()?;
    }
    if flags & abi::O_PATH != 0 {
        let flags = flags & (abi::O_PATH | abi::O_DIRECTORY | abi::O_NOFOLLOW);
        return Ok(Description::new(entry.clone(), Box::new(PlainFile), flags));
    }
    if inode.is_symlink() {
        return Err(Errno::ELOOP);
    }
    let wanted = wanted_access(flags);
    if inode.is_directory() && wanted.0 & Access::WRITE.0 != 0 {
        return Err(Errno::EISDIR);
    }
    if !is_new {
        inode.check(caller, wanted)?;
    }
    let file = open_content(entry, flags)?;
    if flags & abi::O_TRUNC != 0
        && !is_new
        && let Content::Regular(content) = inode.content()
    {
        content.set_size(0)?;
        inode.touch_modified();
    }
    Ok(Description::new(entry.clone(), file, flags))
}

fn wanted_access(flags: u32) -> Access {
    let truncating = if flags & abi::O_TRUNC != 0 { Access::WRITE.0 } else { 0 };
    let mode = match flags & abi::O_ACCMODE {
        abi::O_RDONLY => Access::READ.0,
        abi::O_WRONLY => Access::WRITE.0,
        _ => Access::READ.0 | Access::WRITE.0,
    };
    Access(mode | truncating)
}

fn open_content(entry: &Arc<Entry>, flags: u32) -> Result<Box<dyn File>, Errno> {
    let inode = entry.inode();
    match inode.content() {
        Content::Regular(_) => {
            let writes = wanted_access(flags).0 & Access::WRITE.0 != 0;
            Ok(Box::new(RegularFile::new(entry.clone(), writes)?))
        }
        Content::Directory(_) => Ok(Box::new(OpenDirectory)),
        Content::Generated(_) => Ok(Box::new(GeneratedFile::new(inode.clone()))),
        Content::Device(device) => device.open(flags),
        Content::Fifo(pipe) => {
            let reads = flags & abi::O_ACCMODE != abi::O_WRONLY;
            let writes = flags & abi::O_ACCMODE != abi::O_RDONLY;
            let patience = if flags & abi::O_NONBLOCK != 0 { Patience::Refuse } else { Patience::Wait };
            Ok(Box::new(pipe.open_named(reads, writes, patience)?))
        }
        Content::Socket(_) | Content::Anonymous => Err(Errno::ENXIO),
        Content::Symlink(_) | Content::Jump(_) | Content::GeneratedLink(_) => Err(Errno::ELOOP),
    }
}

/// Finds what `path` names, seen from `context`.
pub(crate) fn find(context: &Context, caller: &Caller, path: &[u8]) -> Result<Arc<Entry>, Errno> {
    Walk::new(context, caller.clone()).find(path)
}

/// Finds the program at `path` and checks that it may be executed: EACCES if it is no regular file or has no
/// permission to be.
pub(crate) fn open_executable(context: &Context, caller: &Caller, path: &[u8]) -> Result<Arc<Entry>, Errno> {
    let entry = find(context, caller, path)?;
    check_executable(&entry, caller)?;
    Ok(entry)
}

/// EACCES unless `entry` is a regular file that `caller` may execute.
pub(crate) fn check_executable(entry: &Entry, caller: &Caller) -> Result<(), Errno> {
    entry.inode().regular().map_err(|_| Errno::EACCES)?;
    entry.inode().check(caller, Access::EXECUTE)
}

/// An opened directory: `getdents` works on the description and its position.
struct OpenDirectory;

impl File for OpenDirectory {
    fn positions(&self) -> Positions {
        Positions::Offsets
    }

    fn read(
        &self,
        _position: &mut u64,
        _to: &mut dyn super::Destination,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        Err(Errno::EISDIR)
    }
}

/// A place in the tree without any way to its content: O_PATH.
struct PlainFile;

impl File for PlainFile {}

/// Opens a file that has no place in the tree and no type: event counters and their like.
pub(crate) fn anonymous(
    filesystem: &'static FileSystem,
    name: &[u8],
    file: Box<dyn File>,
    flags: u32,
) -> Arc<Description> {
    let inode = Inode::new(filesystem, Content::Anonymous, 0o600, &Caller::root());
    Description::new(Entry::unplaced(name, inode), file, flags)
}
