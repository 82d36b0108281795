//! What lies behind a mapping of an object: a file, or memory that several address spaces share.

use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

use crate::environment::Environment;
use crate::frame::FrameRef;
use crate::object::MemoryObject;

/// Why an object could not provide a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingError {
    /// The page lies beyond the object's end.
    PastEnd,
    /// No frame could be had.
    OutOfMemory,
    /// It is not in memory; [`Backing::bring_in`] has it brought there.
    NotYet,
    /// It could not be brought in.
    Failed,
}

/// Which object: device and inode, as `/proc/PID/maps` shows them and as futexes in shared memory are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
}

/// An object that can be mapped. Its frames are the pages of all shared mappings of it, so what is stored through one
/// is seen through all; private mappings copy on the first store.
///
/// Called with an address space's area lock held shared and no table lock: it may take locks of its own, but must not
/// touch user memory.
pub trait Backing<E: Environment>: Send + Sync {
    /// The frame of one page (by index), made if need be. May sleep, but not for a store.
    ///
    /// # Errors
    /// [`BackingError::PastEnd`] at or behind the page after the object's last byte; [`BackingError::NotYet`] if somebody must sleep for it.
    fn frame(&self, page: u64) -> Result<FrameRef<E>, BackingError>;

    /// Brings in a page that [`Backing::frame`] did not find. Called with no lock held; may sleep. The page may be gone again
    /// when this returns: the caller looks again.
    ///
    /// # Errors
    /// As [`Backing::frame`], but never [`BackingError::NotYet`].
    fn bring_in(&self, page: u64) -> Result<(), BackingError> {
        self.object().map_or(Ok(()), |object| object.bring_in(page))
    }

    /// Makes what was stored into these pages last, if it is to outlive the machine. Called with no lock held; may sleep.
    ///
    /// # Errors
    /// [`BackingError::Failed`] if that has failed since it was last asked for through the same opening.
    fn synchronize(&self, pages: Range<u64>) -> Result<(), BackingError> {
        let _ = pages;
        Ok(())
    }

    /// Does `work`, which maps it, with what is decided about stores to it staying as it is meanwhile: whether no new mapping may be stored
    /// to. Called with no lock held.
    fn with_seals(&self, work: &mut dyn FnMut(bool)) {
        work(false);
    }

    /// Whether the page is in memory already (for `mincore`).
    fn is_resident(&self, page: u64) -> bool;

    /// The object whose pages these are, if it is one that must find who maps them; always the same one.
    fn object(&self) -> Option<&MemoryObject<E>>;

    /// Length in bytes.
    fn size(&self) -> u64;

    /// Which object this is.
    fn identity(&self) -> Identity;

    /// Its name for `/proc/PID/maps`: a path, or words like `/dev/zero (deleted)`.
    fn name(&self) -> String;
}

/// A counted reference to an object.
pub type BackingRef<E> = Arc<dyn Backing<E>>;
