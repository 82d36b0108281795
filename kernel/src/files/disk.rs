//! Disks as files: `/dev/vda`, `/dev/vdb`, …
//!
//! What is read and written are pages in memory, the same that mappings show (`memory`'s `stored`); they are brought in when they are first
//! wanted, and written back when somebody asks for it, from time to time, and before the machine goes off. The end of a disk
//! does not move: reading there gives nothing, writing there finds no room.
//!
//! An opening with O_DIRECT owes whole sectors, as on Linux, else it is EINVAL; what it writes is on the disk when the call
//! returns. It goes through the same pages, so that it sees what others have written.

use super::device::Device;
use super::file::{File, Patience, Positions};
use super::inode::{Content, Inode};
use super::transfer::{Destination, Source, collect, deliver};
use crate::block::{self, Disk, SECTOR};
use crate::memory::{Backing, Frame, Kernel, MemoryObject, cache, room, user};
use crate::process;
use crate::sync::{Mutex, Once};
use crate::syscall::Errno;
use ::memory::{BackingError, Identity, PAGE_SIZE, Trail};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl;

/// Major number of virtio disks: the first that Linux gives out by itself.
pub(super) const MAJOR: u32 = 254;
/// Minor numbers of one disk: itself and its partitions.
pub(super) const MINORS: u32 = 16;

/// A disk's content: its pages, as far as they are in memory.
pub(super) struct DiskContent {
    disk: Arc<Disk>,
    index: u32,
    pages: Arc<MemoryObject>,
    /// Held over each write.
    writing: Mutex<()>,
}

static CONTENTS: Once<Box<[DiskContent]>> = Once::new();

/// Makes what the kernel has found known to programs. Called once.
pub(super) fn initialize() {
    let contents: Box<[DiskContent]> = (0..).zip(block::disks()).map(|(index, disk)| DiskContent::new(index, disk)).collect();
    if !contents.is_empty() {
        cache::start_background();
        room::start_background();
    }
    CONTENTS.set(contents);
}

fn contents() -> &'static [DiskContent] {
    CONTENTS.get().map_or(&[], |contents| contents)
}

/// The disk with this minor number; partitions are not looked for.
pub(super) fn of_minor(minor: u32) -> Option<&'static DiskContent> {
    if !minor.is_multiple_of(MINORS) {
        return None;
    }
    contents().get((minor / MINORS) as usize)
}

/// The disks' numbers and names.
pub(super) fn names() -> impl Iterator<Item = (u32, String)> {
    (0..contents().len()).map(|index| (index as u32, name(index)))
}

/// `vda` to `vdz`, then `vdaa`.
fn name(index: usize) -> String {
    let letter = |index: usize| char::from(b'a' + (index % 26) as u8);
    let mut letters = vec![letter(index)];
    let mut rest = index / 26;
    while rest > 0 {
        letters.push(letter(rest - 1));
        rest = (rest - 1) / 26;
    }
    "vd".chars().chain(letters.into_iter().rev()).collect()
}

/// Makes all that was written to disks last. Whoever wants to know of errors uses `fsync`.
pub(crate) fn synchronize_disks() {
    cache::write_back_all();
}

impl DiskContent {
    fn new(index: u32, disk: &Arc<Disk>) -> Self {
        let identity = Identity { device: u64::from(MAJOR) << 8, inode: u64::from(index) };
        let pages = MemoryObject::with_store(&Kernel, identity, String::new(), disk.size(), disk.clone());
        let pages = Arc::new(pages);
        cache::register(pages.clone());
        Self { disk: disk.clone(), index, pages, writing: Mutex::new(()) }
    }

    pub(super) fn size(&self) -> u64 {
        self.disk.size()
    }

    /// Carries bytes to or from pages, with room made for those that must be brought in.
    fn carry(&self, mut attempt: impl FnMut(&MemoryObject) -> Result<usize, BackingError>) -> Result<usize, Errno> {
        loop {
            room::keep();
            match attempt(&self.pages) {
                Err(BackingError::OutOfMemory) if room::make() => {}
                Err(BackingError::OutOfMemory) => return Err(Errno::ENOMEM),
                outcome => return outcome.map_err(|_| Errno::EIO),
            }
        }
    }
}

/// A disk that is to be swapped to.
#[derive(Clone, Copy)]
pub(crate) struct SwapFile(&'static DiskContent);

impl PartialEq for SwapFile {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl SwapFile {
    /// The disk that an inode stands for: EINVAL if it is none that can be written, EISDIR for a directory.
    pub(crate) fn of(inode: &Inode) -> Result<Self, Errno> {
        match inode.content() {
            Content::Device(Device::Disk(index)) => {
                let content = contents().get(*index as usize).ok_or(Errno::ENXIO)?;
                if content.disk.is_read_only() { Err(Errno::EACCES) } else { Ok(Self(content)) }
            }
            Content::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Its first bytes; EINVAL if it has not so many.
    pub(crate) fn read_first(self, bytes: &mut [u8]) -> Result<(), Errno> {
        let trail = Trail::new();
        let mut done = 0;
        while done < bytes.len() {
            match self.0.carry(|pages| pages.read(done as u64, &mut bytes[done..], &trail))? {
                0 => return Err(Errno::EINVAL),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Writes what is in memory of it, and forgets that; the disk itself.
    pub(crate) fn prepare(self) -> Result<Arc<Disk>, Errno> {
        let failures = self.0.pages.failures();
        self.0.pages.write_back(0..u64::MAX);
        if self.0.pages.failures() != failures {
            return Err(Errno::EIO);
        }
        self.0.pages.forget_clean();
        Ok(self.0.disk.clone())
    }

    pub(crate) fn size(self) -> u64 {
        self.0.size()
    }

    pub(crate) fn name(self) -> String {
        ["/dev/", &name(self.0.index as usize)].concat()
    }
}

/// One opening of a disk, which hears of each failure once.
struct Opening {
    content: &'static DiskContent,
    /// The failures that it has heard of, or that came before it.
    heard: AtomicU64,
}

impl Opening {
    /// Writes back what was stored into some pages. EIO if that, or writing back in the background, has failed since this opening
    /// last asked.
    fn write_back(&self, pages: Range<u64>) -> Result<(), Errno> {
        self.content.pages.write_back(pages);
        let failures = self.content.pages.failures();
        if self.heard.swap(failures, Ordering::Relaxed) == failures { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl ::memory::Backing<Kernel> for Opening {
    fn frame(&self, page: u64) -> Result<Frame, BackingError> {
        self.content.pages.frame(page)
    }

    fn bring_in(&self, page: u64) -> Result<(), BackingError> {
        cache::note_wait();
        room::keep();
        self.content.pages.bring_in(page)
    }

    fn synchronize(&self, pages: Range<u64>) -> Result<(), BackingError> {
        self.write_back(pages).map_err(|_| BackingError::Failed)
    }

    fn object(&self) -> Option<&MemoryObject> {
        Some(&self.content.pages)
    }

    fn is_resident(&self, page: u64) -> bool {
        self.content.pages.is_resident(page)
    }

    fn size(&self) -> u64 {
        self.content.size()
    }

    fn identity(&self) -> Identity {
        self.content.pages.identity()
    }

    fn name(&self) -> String {
        SwapFile(self.content).name()
    }
}

/// An opened disk.
pub(crate) struct DiskFile {
    opening: Arc<Opening>,
    /// Opened with O_DIRECT.
    is_direct: bool,
    trail: Trail,
}

impl DiskFile {
    /// ENXIO if there is no such disk.
    pub(super) fn open(index: u32, flags: u32) -> Result<Self, Errno> {
        let content = contents().get(index as usize).ok_or(Errno::ENXIO)?;
        let heard = AtomicU64::new(content.pages.failures());
        Ok(Self { opening: Arc::new(Opening { content, heard }), is_direct: flags & abi::O_DIRECT != 0, trail: Trail::new() })
    }

    /// `fsync`.
    pub(crate) fn synchronize(&self) -> Result<usize, Errno> {
        self.opening.write_back(0..u64::MAX).map(|()| 0)
    }

    fn check_direct(&self, position: u64, length: usize) -> Result<(), Errno> {
        let is_whole = (position | length as u64).is_multiple_of(SECTOR);
        if self.is_direct && !is_whole { Err(Errno::EINVAL) } else { Ok(()) }
    }
}

impl File for DiskFile {
    fn positions(&self) -> Positions {
        Positions::Offsets
    }

    fn read(&self, position: &mut u64, to: &mut dyn Destination, _patience: Patience) -> Result<usize, Errno> {
        self.check_direct(*position, to.remaining())?;
        let start = *position;
        let content = self.opening.content;
        let count = deliver(to, |done, buffer| content.carry(|pages| pages.read(start.saturating_add(done), buffer, &self.trail)))?;
        *position += count as u64;
        Ok(count)
    }

    fn write(
        &self,
        position: &mut u64,
        append: bool,
        from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        let content = self.opening.content;
        if content.disk.is_read_only() {
            return Err(Errno::EPERM);
        }
        if from.remaining() == 0 {
            return Ok(0);
        }
        let start = if append { content.size() } else { *position };
        self.check_direct(start, from.remaining())?;
        if start >= content.size() {
            return Err(Errno::ENOSPC);
        }
        let writing = content.writing.lock();
        let count = collect(from, |done, bytes| content.carry(|pages| pages.write(start + done, bytes, &self.trail)))?;
        drop(writing);
        *position = start + count as u64;
        if self.is_direct {
            self.opening.write_back(start / PAGE_SIZE..position.div_ceil(PAGE_SIZE))?;
        }
        Ok(count)
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        let disk = &self.opening.content.disk;
        match request {
            ioctl::BLKGETSIZE64 => user::write(argument, &disk.size())?,
            ioctl::BLKGETSIZE => user::write(argument, &(disk.size() / SECTOR))?,
            ioctl::BLKSSZGET | ioctl::BLKPBSZGET => user::write(argument, &(SECTOR as u32))?,
            ioctl::BLKBSZGET => user::write(argument, &(PAGE_SIZE as u32))?,
            ioctl::BLKROGET => user::write(argument, &u32::from(disk.is_read_only()))?,
            ioctl::BLKFLSBUF if process::caller_of(process::current().process()).user == 0 => {
                self.synchronize()?;
                self.opening.content.pages.forget_clean();
            }
            ioctl::BLKFLSBUF => return Err(Errno::EACCES),
            _ => return Err(Errno::ENOTTY),
        }
        Ok(0)
    }

    fn backing(&self, may_be_stored_to: bool) -> Result<Arc<Backing>, Errno> {
        if may_be_stored_to && self.opening.content.disk.is_read_only() {
            return Err(Errno::EINVAL);
        }
        Ok(self.opening.clone())
    }
}
