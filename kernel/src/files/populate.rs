//! The tree as a program finds it: what was in the initial archive, the mounted file systems, the devices.

use super::archive::{Archive, Record};
use super::console::{ConsoleFile, Line};
use super::filesystem::{self, DEVICES, FileSystem, PROC, ROOT, SHARED_MEMORY, SYS, TEMPORARY};
use super::inode::Generated;
use super::walk::Walk;
use super::{
    Caller, Content, Context, Description, Device, Directory, Entry, FileContent, FileTable, Inode, Pipe,
    Timestamp, procfs, sysfs, tree,
};
use crate::sync::Once;
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;

static TREE: Once<Arc<Entry>> = Once::new();

/// The root of the tree.
///
/// # Panics
/// Before `initialize`.
pub(crate) fn root() -> &'static Arc<Entry> {
    TREE.expect("the file tree")
}

/// Builds the tree from the initial archive. What the archive lacks or has damaged is logged and left out.
pub(crate) fn initialize(archive: &'static [u8]) {
    let caller = Caller::root();
    let inode = Inode::new(&ROOT, Content::Directory(Directory::new()), 0o755, &caller);
    TREE.set(Entry::new(None, b"/", inode));
    filesystem::note_mount("/", &ROOT);
    unpack(archive);
    for (what, result) in [
        ("/dev", devices()),
        ("/dev/shm", mounted("dev/shm", "/dev/shm", &SHARED_MEMORY, 0o1777).map(drop)),
        ("/tmp", temporary()),
        ("/proc", mounted("proc", "/proc", &PROC, 0o555).and_then(|root| procfs::populate(&root))),
        ("/sys", mounted("sys", "/sys", &SYS, 0o555).and_then(|root| sysfs::populate(&root))),
    ] {
        if let Err(error) = result {
            log::warn!("{what} could not be set up: {error:?}");
        }
    }
}

/// The descriptors of the first program: standard input, output and error.
pub(crate) fn initial_table() -> Arc<FileTable> {
    let table = FileTable::new();
    let lines = [
        packed_input().unwrap_or_else(|| line(Line::Input, abi::O_RDONLY)),
        line(Line::Output, abi::O_WRONLY),
        line(Line::Error, abi::O_WRONLY),
    ];
    for description in lines {
        // Three descriptors fit into any table.
        let _ = table.insert(description, false, 0, 3);
    }
    Arc::new(table)
}

fn line(line: Line, mode: u32) -> Arc<Description> {
    let devices = root().directory().and_then(|directory| directory.find(root(), b"dev"));
    let content = Content::Device(Device::Standard(line));
    let inode = Inode::new(&DEVICES, content, 0o620, &Caller::root());
    let entry = Entry::new(devices, b"console", inode);
    Description::new(entry, Box::new(ConsoleFile::line(line)), mode | abi::O_LARGEFILE)
}

/// The whole of standard input as a file, which the archive brings along for runs that must not depend on when bytes
/// arrive.
fn packed_input() -> Option<Arc<Description>> {
    let walk = walk();
    let entry = walk.find(protocol::orders::INPUT.as_bytes()).ok()?;
    super::open_entry(&entry, abi::O_RDONLY | abi::O_LARGEFILE, walk.caller(), false).ok()
}

/// A walk from the root as the kernel itself.
fn walk() -> Walk {
    Walk::new(&Context::new(root().clone()), Caller::root())
}

fn unpack(archive: &'static [u8]) {
    // The hard links of a file by its number in the archive.
    let mut linked = BTreeMap::new();
    for record in Archive::new(archive) {
        match record {
            Ok(record) => {
                if let Err(error) = unpack_one(&record, &mut linked) {
                    log::warn!("initial archive: {} left out: {error:?}", record.name.escape_ascii());
                }
            }
            Err(damage) => log::warn!("initial archive: {} at byte {}", damage.reason, damage.offset),
        }
    }
}

fn unpack_one(record: &Record, linked: &mut BTreeMap<u32, Arc<Entry>>) -> Result<(), Errno> {
    let type_bits = record.mode & abi::S_IFMT;
    if record.name.is_empty() {
        root().inode().change(|attributes| attributes.permissions = record.mode & 0o7777);
        return Ok(());
    }
    let parent = match record.name.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => directories(root(), &record.name[..slash], &ROOT)?,
        None => root().clone(),
    };
    let place = walk().from(parent).for_change().place(last_name(record.name))?;
    if type_bits == abi::S_IFREG
        && record.links > 1
        && let Some(first) = linked.get(&record.number)
    {
        // Of a file with several names only the last has the content, and it may have come first or last.
        if record.content.is_empty() {
            return tree::link(first, &place, &Caller::root());
        }
    }
    let content = match type_bits {
        abi::S_IFDIR if place.entry.is_some() => {
            let entry = place.existing()?;
            entry.inode().directory()?;
            return set_attributes(entry.inode(), record);
        }
        abi::S_IFDIR => Content::Directory(Directory::new()),
        abi::S_IFLNK => Content::Symlink(record.content.into()),
        abi::S_IFIFO => Content::Fifo(Pipe::new()),
        abi::S_IFCHR | abi::S_IFBLK => {
            let (major, minor) = record.device;
            Content::Device(Device::of_numbers(type_bits == abi::S_IFBLK, major, minor))
        }
        abi::S_IFREG => Content::Regular(FileContent::from_bytes(record.content)),
        _ => return Err(Errno::EINVAL),
    };
    if place.entry.is_some() {
        tree::unlink(&place, &Caller::root())?;
    }
    let place = walk().from(place.parent).for_change().place(last_name(record.name))?;
    let entry = tree::create(&place, content, record.mode, &Caller::root())?;
    set_attributes(entry.inode(), record)?;
    if let Some(earlier) = linked.insert(record.number, entry.clone())
        && type_bits == abi::S_IFREG
        && record.links > 1
    {
        relink(&earlier, &entry)?;
    }
    Ok(())
}

/// Makes a name whose record came before the one with the content a name of `entry`'s file.
fn relink(earlier: &Arc<Entry>, entry: &Arc<Entry>) -> Result<(), Errno> {
    let parent = earlier.parent().ok_or(Errno::ENOENT)?;
    let name = earlier.name();
    let find = || walk().from(parent.clone()).for_change().place(&name);
    tree::unlink(&find()?, &Caller::root())?;
    tree::link(entry, &find()?, &Caller::root())
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

fn set_attributes(inode: &Inode, record: &Record) -> Result<(), Errno> {
    let modified = Timestamp { seconds: i64::from(record.modified), nanoseconds: 0 };
    inode.change(|attributes| {
        attributes.permissions = record.mode & 0o7777;
        attributes.owner = record.owner;
        attributes.group = record.group;
        attributes.modified = modified;
        attributes.accessed = modified;
    });
    Ok(())
}

/// The directory at `path` below `start`; those that are missing on the way are made.
fn directories(start: &Arc<Entry>, path: &[u8], filesystem: &'static FileSystem) -> Result<Arc<Entry>, Errno> {
    let mut current = start.clone();
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        let found = walk().from(current.clone()).find(name);
        current = match found {
            Ok(entry) => entry,
            Err(Errno::ENOENT) => child(&current, name, filesystem, Content::Directory(Directory::new()), 0o755)?,
            Err(error) => return Err(error),
        };
        current.inode().directory()?;
    }
    Ok(current)
}

/// Puts a new file into `parent`, also where programs may not.
fn child(
    parent: &Arc<Entry>,
    name: &[u8],
    filesystem: &'static FileSystem,
    content: Content,
    permissions: u32,
) -> Result<Arc<Entry>, Errno> {
    let is_directory = matches!(content, Content::Directory(_));
    let inode = Inode::new(filesystem, content, permissions, &Caller::root());
    let entry = Entry::new(Some(parent.clone()), name, inode);
    parent.inode().directory()?.insert(name, entry.clone());
    if is_directory {
        parent.inode().change(|attributes| attributes.links += 1);
    }
    Ok(entry)
}

/// The directory at `path` below `root` in a file system that the kernel fills.
pub(super) fn directory(
    root: &Arc<Entry>,
    path: &str,
    filesystem: &'static FileSystem,
) -> Result<Arc<Entry>, Errno> {
    directories(root, path.as_bytes(), filesystem)
}

/// Text made by a function.
struct Made(fn() -> Vec<u8>);

impl Generated for Made {
    fn text(&self) -> Result<Vec<u8>, Errno> {
        Ok((self.0)())
    }
}

/// A read-only file whose text is made by `text` each time it is read.
pub(super) fn generated(
    parent: &Arc<Entry>,
    name: &str,
    filesystem: &'static FileSystem,
    text: fn() -> Vec<u8>,
) -> Result<(), Errno> {
    file(parent, name, filesystem, Content::Generated(Box::new(Made(text))), 0o444)
}

/// A file of any content.
pub(super) fn file(
    parent: &Arc<Entry>,
    name: &str,
    filesystem: &'static FileSystem,
    content: Content,
    permissions: u32,
) -> Result<(), Errno> {
    child(parent, name.as_bytes(), filesystem, content, permissions).map(drop)
}

/// Mounts `filesystem` on the directory `path`, which is made if it is missing.
fn mounted(
    path: &str,
    shown: &'static str,
    filesystem: &'static FileSystem,
    permissions: u32,
) -> Result<Arc<Entry>, Errno> {
    let covered = directories(root(), path.as_bytes(), &ROOT)?;
    let content = if core::ptr::eq(filesystem, &PROC) {
        Directory::with_listing(procfs::processes())
    } else {
        Directory::new()
    };
    let inode = Inode::new(filesystem, Content::Directory(content), permissions, &Caller::root());
    filesystem::note_mount(shown, filesystem);
    tree::mount(&covered, inode)
}

/// `/tmp` is a file system of its own only if the archive put nothing there.
fn temporary() -> Result<(), Errno> {
    let directory = directories(root(), b"tmp", &ROOT)?;
    if directory.inode().directory()?.is_empty() {
        mounted("tmp", "/tmp", &TEMPORARY, 0o1777)?;
    } else {
        directory.inode().change(|attributes| attributes.permissions = 0o1777);
    }
    Ok(())
}

fn devices() -> Result<(), Errno> {
    let root = mounted("dev", "/dev", &DEVICES, 0o755)?;
    for (name, device) in [
        ("null", Device::Null),
        ("zero", Device::Zero),
        ("full", Device::Full),
        ("random", Device::Random(8)),
        ("urandom", Device::Random(9)),
        ("tty", Device::Terminal),
        ("console", Device::Console),
    ] {
        file(&root, name, &DEVICES, Content::Device(device), 0o666)?;
    }
    super::disk::initialize();
    for (index, name) in super::disk::names() {
        file(&root, &name, &DEVICES, Content::Device(Device::Disk(index)), 0o600)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        file(&root, name, &DEVICES, Content::Symlink(target.as_bytes().into()), 0o777)?;
    }
    child(&root, b"shm", &DEVICES, Content::Directory(Directory::new()), 0o755)?;
    Ok(())
}
