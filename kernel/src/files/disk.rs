//! Disks as files: `/dev/vda`, `/dev/vdb`, …
//!
//! Positions are bytes, whatever the disk's sectors are: a write of a part of a page reads that page first, and is kept apart from
//! other writes by a lock. The end of a disk does not move: reading there gives nothing, writing there finds no room.
//!
//! An opening with O_DIRECT owes whole sectors, as on Linux, else it is EINVAL.

use super::file::{File, Patience, Positions};
use super::transfer::{Destination, Source, collect, deliver};
use crate::block::{self, Direction, Disk, SECTOR};
use crate::memory::{Frame, Kernel, user};
use crate::sync::{Mutex, Once};
use crate::syscall::Errno;
use ::memory::PAGE_SIZE;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl;

/// Major number of virtio disks: the first that Linux gives out by itself.
pub(super) const MAJOR: u32 = 254;
/// Minor numbers of one disk: itself and its partitions.
pub(super) const MINORS: u32 = 16;

/// A disk's content.
pub(super) struct DiskContent {
    disk: Arc<Disk>,
    /// Held over each write.
    writing: Mutex<()>,
}

static CONTENTS: Once<Box<[DiskContent]>> = Once::new();

/// Makes what the kernel has found known to programs. Called once.
pub(super) fn initialize() {
    let content = |disk: &Arc<Disk>| DiskContent { disk: disk.clone(), writing: Mutex::new(()) };
    CONTENTS.set(block::disks().iter().map(content).collect());
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

/// Makes all that was written to disks last.
pub(crate) fn synchronize_disks() {
    for content in contents() {
        // Whoever wants to know of errors uses `fsync`.
        let _ = content.synchronize();
    }
}

impl DiskContent {
    pub(super) fn size(&self) -> u64 {
        self.disk.size()
    }

    /// Makes all that was written last.
    fn synchronize(&self) -> Result<(), Errno> {
        self.disk.flush().map_err(|_| Errno::EIO)
    }

    /// How much of a transfer of `length` bytes at `offset` lies in the same page, and on the disk.
    fn piece(&self, offset: u64, length: usize) -> usize {
        let in_page = PAGE_SIZE - offset % PAGE_SIZE;
        in_page.min(self.size().saturating_sub(offset)).min(length as u64) as usize
    }

    /// Carries the page that `offset` lies in, as far as the disk has it.
    fn carry(&self, direction: Direction, offset: u64, frame: &Frame) -> Result<(), Errno> {
        let start = offset / PAGE_SIZE * PAGE_SIZE;
        let bytes = PAGE_SIZE.min(self.size() - start) as usize;
        let progress = self.disk.begin(direction, start, vec![frame.clone()], bytes);
        self.disk.wait(&progress).map_err(|_| Errno::EIO)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let length = self.piece(at, buffer.len() - done);
            if length == 0 {
                break;
            }
            let frame = Frame::allocate(&Kernel).map_err(|_| Errno::ENOMEM)?;
            self.carry(Direction::In, at, &frame)?;
            frame.read((at % PAGE_SIZE) as usize, &mut buffer[done..done + length]);
            done += length;
        }
        Ok(done)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let length = self.piece(at, bytes.len() - done);
            if length == 0 {
                break;
            }
            let frame = Frame::allocate(&Kernel).map_err(|_| Errno::ENOMEM)?;
            if length < PAGE_SIZE as usize {
                self.carry(Direction::In, at, &frame)?;
            }
            frame.write((at % PAGE_SIZE) as usize, &bytes[done..done + length]);
            self.carry(Direction::Out, at, &frame)?;
            done += length;
        }
        Ok(done)
    }
}

/// An opened disk.
pub(crate) struct DiskFile {
    content: &'static DiskContent,
    /// Opened with O_DIRECT.
    is_direct: bool,
}

impl DiskFile {
    /// ENXIO if there is no such disk.
    pub(super) fn open(index: u32, flags: u32) -> Result<Self, Errno> {
        let content = contents().get(index as usize).ok_or(Errno::ENXIO)?;
        Ok(Self { content, is_direct: flags & abi::O_DIRECT != 0 })
    }

    /// `fsync`.
    pub(crate) fn synchronize(&self) -> Result<usize, Errno> {
        self.content.synchronize().map(|()| 0)
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
        let count = deliver(to, |done, buffer| self.content.read(start.saturating_add(done), buffer))?;
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
        if self.content.disk.is_read_only() {
            return Err(Errno::EPERM);
        }
        if from.remaining() == 0 {
            return Ok(0);
        }
        let start = if append { self.content.size() } else { *position };
        self.check_direct(start, from.remaining())?;
        if start >= self.content.size() {
            return Err(Errno::ENOSPC);
        }
        let _writing = self.content.writing.lock();
        let count = collect(from, |done, bytes| self.content.write(start + done, bytes))?;
        *position = start + count as u64;
        Ok(count)
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        let disk = &self.content.disk;
        match request {
            ioctl::BLKGETSIZE64 => user::write(argument, &disk.size())?,
            ioctl::BLKGETSIZE => user::write(argument, &(disk.size() / SECTOR))?,
            ioctl::BLKSSZGET | ioctl::BLKPBSZGET => user::write(argument, &(SECTOR as u32))?,
            ioctl::BLKBSZGET => user::write(argument, &(PAGE_SIZE as u32))?,
            ioctl::BLKROGET => user::write(argument, &u32::from(disk.is_read_only()))?,
            ioctl::BLKFLSBUF if crate::process::caller_of(crate::process::current().process()).user == 0 => self.content.synchronize()?,
            ioctl::BLKFLSBUF => return Err(Errno::EACCES),
            _ => return Err(Errno::ENOTTY),
        }
        Ok(0)
    }
}
