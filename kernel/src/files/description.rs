//! Open file descriptions: one opening of a file.
//!
//! Descriptors made by `dup` and inherited over `fork` share a description, and with it the position and the
//! status flags. The position has a sleeping lock, held over the transfer: two writers with one description
//! do not write over each other. Streams have no position and do not take it.

use super::epoll::Interest;
use super::file::{File, Patience, Positions};
use super::{Destination, Entry, Inode, Readiness, Source, lock};
use crate::sync::{Mutex, SpinLock};
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU32, Ordering};
use linux_raw_sys::general as abi;

/// Flags that `fcntl(F_SETFL)` can change.
const CHANGEABLE: u32 = abi::O_APPEND | abi::O_NONBLOCK | abi::FASYNC | abi::O_DIRECT | abi::O_NOATIME;
/// Flags that only matter while opening, and that F_GETFL does not show.
const OPENING_ONLY: u32 = abi::O_CREAT | abi::O_EXCL | abi::O_NOCTTY | abi::O_TRUNC | abi::O_CLOEXEC;

pub(crate) struct Description {
    entry: Arc<Entry>,
    file: Box<dyn File>,
    flags: AtomicU32,
    position: Mutex<u64>,
    /// Epoll instances that watch this description; they are told when it goes away.
    interests: SpinLock<Vec<Weak<Interest>>>,
}

impl Description {
    /// `flags` are those of `open`.
    pub(crate) fn new(entry: Arc<Entry>, file: Box<dyn File>, flags: u32) -> Arc<Self> {
        Arc::new(Self {
            entry,
            file,
            flags: AtomicU32::new(flags & !OPENING_ONLY),
            position: Mutex::new(0),
            interests: SpinLock::new(Vec::new()),
        })
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(crate) fn inode(&self) -> &Arc<Inode> {
        self.entry.inode()
    }

    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// The file as the kind `F`, if it is one.
    pub(crate) fn file_as<F: File>(&self) -> Option<&F> {
        let file: &dyn Any = &*self.file;
        file.downcast_ref()
    }

    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Sets those of `flags` that can be changed.
    pub(crate) fn set_flags(&self, flags: u32) {
        let change = |former: u32| Some(former & !CHANGEABLE | flags & CHANGEABLE);
        // The closure always returns a value, so the update cannot fail.
        let _ = self.flags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.is_path_only() && matches!(self.flags() & abi::O_ACCMODE, abi::O_RDONLY | abi::O_RDWR)
    }

    pub(crate) fn is_writable(&self) -> bool {
        !self.is_path_only() && matches!(self.flags() & abi::O_ACCMODE, abi::O_WRONLY | abi::O_RDWR)
    }

    /// Opened with O_PATH: stands for a place in the tree, not for content.
    pub(crate) fn is_path_only(&self) -> bool {
        self.flags() & abi::O_PATH != 0
    }

    pub(crate) fn patience(&self) -> Patience {
        if self.flags() & abi::O_NONBLOCK != 0 { Patience::Refuse } else { Patience::Wait }
    }

    /// What can be done at once.
    pub(crate) fn readiness(&self) -> Readiness {
        self.file.polled(self.patience())
    }

    /// Reads at the position and moves it on.
    pub(crate) fn read(&self, to: &mut dyn Destination) -> Result<usize, Errno> {
        self.check_readable()?;
        match self.file.positions() {
            Positions::Offsets => self.file.read(&mut self.position.lock(), to, self.patience()),
            _ => self.file.read(&mut 0, to, self.patience()),
        }
    }

    /// Writes at the position, or at the end with O_APPEND, and moves it on.
    pub(crate) fn write(&self, from: &mut dyn Source) -> Result<usize, Errno> {
        self.check_writable()?;
        let append = self.flags() & abi::O_APPEND != 0;
        match self.file.positions() {
            Positions::Offsets => self.file.write(&mut self.position.lock(), append, from, self.patience()),
            _ => self.file.write(&mut 0, append, from, self.patience()),
        }
    }

    /// Reads at `offset`; the position stays.
    pub(crate) fn read_at(&self, mut offset: u64, to: &mut dyn Destination) -> Result<usize, Errno> {
        self.check_positioned()?;
        self.check_readable()?;
        self.file.read(&mut offset, to, self.patience())
    }

    /// Writes at `offset`, except that O_APPEND still means the end; the position stays.
    pub(crate) fn write_at(&self, mut offset: u64, from: &mut dyn Source) -> Result<usize, Errno> {
        self.check_positioned()?;
        self.check_writable()?;
        let append = self.flags() & abi::O_APPEND != 0;
        self.file.write(&mut offset, append, from, self.patience())
    }

    /// Writes at the end; the position moves there only if `moves`.
    pub(crate) fn append(&self, from: &mut dyn Source, moves: bool) -> Result<usize, Errno> {
        self.check_writable()?;
        if moves && self.file.positions() == Positions::Offsets {
            self.file.write(&mut self.position.lock(), true, from, self.patience())
        } else {
            self.file.write(&mut 0, true, from, self.patience())
        }
    }

    fn check_readable(&self) -> Result<(), Errno> {
        if self.is_readable() { Ok(()) } else { Err(Errno::EBADF) }
    }

    fn check_writable(&self) -> Result<(), Errno> {
        if self.is_writable() { Ok(()) } else { Err(Errno::EBADF) }
    }

    fn check_positioned(&self) -> Result<(), Errno> {
        if self.is_path_only() {
            Err(Errno::EBADF)
        } else if self.file.positions() == Positions::None {
            Err(Errno::ESPIPE)
        } else {
            Ok(())
        }
    }

    /// Changes the position by `change`, which is given the present one.
    pub(crate) fn seek(&self, change: impl FnOnce(u64) -> Result<u64, Errno>) -> Result<u64, Errno> {
        match self.file.positions() {
            Positions::None => Err(Errno::ESPIPE),
            Positions::Ignored => Ok(0),
            Positions::Offsets => {
                let mut position = self.position.lock();
                *position = change(*position)?;
                Ok(*position)
            }
        }
    }

    /// Notes that an epoll instance watches this description.
    pub(super) fn note_interest(&self, interest: &Arc<Interest>) {
        let mut interests = self.interests.lock();
        interests.retain(|other| other.strong_count() > 0);
        interests.push(Arc::downgrade(interest));
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        for interest in core::mem::take(self.interests.get_mut()) {
            if let Some(interest) = interest.upgrade() {
                interest.file_is_gone(&*self.file);
            }
        }
        lock::release_description(self.entry.inode(), self);
    }
}
