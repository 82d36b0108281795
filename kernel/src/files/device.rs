//! Devices: the ones that programs expect to find in `/dev`.

use super::disk::{self, DiskFile};
use super::console::{ConsoleFile, Line};
use super::file::{File, Patience, Positions};
use super::transfer::{Destination, Source, collect, deliver};
use crate::memory::Backing;
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;

/// What a device file stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Null,
    Zero,
    Full,
    /// `/dev/random` and `/dev/urandom`; the number is the minor one.
    Random(u32),
    /// The controlling terminal of whoever opens it, which here is always the console.
    Terminal,
    Console,
    /// The three lines that the first program has as its descriptors 0, 1 and 2.
    Standard(Line),
    /// The disk of that number.
    Disk(u32),
    /// Nothing that this kernel has: can be made and looked at but not opened.
    Absent { block: bool, major: u32, minor: u32 },
}

impl Device {
    /// The device with these numbers.
    pub(crate) fn of_numbers(block: bool, major: u32, minor: u32) -> Self {
        match (block, major, minor) {
            (false, 1, 3) => Self::Null,
            (false, 1, 5) => Self::Zero,
            (false, 1, 7) => Self::Full,
            (false, 1, 8 | 9) => Self::Random(minor),
            (false, 5, 0) => Self::Terminal,
            (false, 5, 1) => Self::Console,
            (true, disk::MAJOR, _) if disk::of_minor(minor).is_some() => Self::Disk(minor / disk::MINORS),
            _ => Self::Absent { block, major, minor },
        }
    }

    /// Major and minor number.
    pub(crate) fn numbers(self) -> (u32, u32) {
        match self {
            Self::Null => (1, 3),
            Self::Zero => (1, 5),
            Self::Full => (1, 7),
            Self::Random(minor) => (1, minor),
            Self::Terminal => (5, 0),
            Self::Console | Self::Standard(_) => (5, 1),
            Self::Disk(index) => (disk::MAJOR, index * disk::MINORS),
            Self::Absent { major, minor, .. } => (major, minor),
        }
    }

    pub(crate) fn type_bits(self) -> u32 {
        match self {
            Self::Disk(_) | Self::Absent { block: true, .. } => abi::S_IFBLK,
            _ => abi::S_IFCHR,
        }
    }

    /// The size of what is on it: 0 unless it is a disk.
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::Disk(index) => disk::of_minor(index * disk::MINORS).map_or(0, |disk| disk.size()),
            _ => 0,
        }
    }

    /// Opens it with the flags of `open`. ENXIO for a device that is not there.
    pub(crate) fn open(self, flags: u32) -> Result<Box<dyn File>, Errno> {
        match self {
            Self::Null | Self::Zero | Self::Full | Self::Random(_) => Ok(Box::new(DeviceFile(self))),
            Self::Terminal | Self::Console => Ok(Box::new(ConsoleFile::terminal())),
            Self::Standard(line) => Ok(Box::new(ConsoleFile::line(line))),
            Self::Disk(index) => Ok(Box::new(DiskFile::open(index, flags)?)),
            Self::Absent { .. } => Err(Errno::ENXIO),
        }
    }
}

/// An opening of a device without state.
struct DeviceFile(Device);

impl File for DeviceFile {
    fn positions(&self) -> Positions {
        Positions::Ignored
    }

    fn read(&self, _position: &mut u64, to: &mut dyn Destination, _patience: Patience) -> Result<usize, Errno> {
        match self.0 {
            Device::Null => Ok(0),
            _ => deliver(to, |done, buffer| {
                // There is no end to come to: a signal is one.
                if done > 0 && crate::task::current().interrupted() {
                    return Ok(0);
                }
                match self.0 {
                    Device::Random(_) => crate::process::random::fill(buffer),
                    _ => buffer.fill(0),
                }
                Ok(buffer.len())
            }),
        }
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        match self.0 {
            Device::Full => Err(Errno::ENOSPC),
            // Nothing is read: a bad address is no error, as on Linux.
            Device::Null | Device::Zero => Ok(from.remaining()),
            _ => collect(from, |_, bytes| Ok(bytes.len())),
        }
    }

    fn backing(&self, _may_be_stored_to: bool) -> Result<Arc<Backing>, Errno> {
        match self.0 {
            Device::Zero => Ok(crate::memory::zero_backing(u64::MAX)),
            _ => Err(Errno::ENODEV),
        }
    }
}
