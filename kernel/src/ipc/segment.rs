//! A segment of shared memory.
//!
//! How often it is attached is how many areas of all address spaces show its memory. So nobody counts when a program forks, unmaps a part,
//! or ends; and a segment that was removed goes with the last area, as nothing else holds its memory then.

use alloc::format;
use alloc::sync::{Arc, Weak};

use super::permission::{Change, Permission, Record};
use crate::memory::{Backing, Kernel, MemoryObject};
use crate::process::current;
use ::memory::Identity;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The device of which segments are, by their numbers.
pub(crate) const SEGMENT_DEVICE: u64 = 11;
/// Marks in a mode: it goes with its last attachment; its pages shall stay in memory.
const REMOVED: u32 = 0o1000;
/// See [`REMOVED`].
const LOCKED: u32 = 0o2000;

/// `struct shmid64_ds`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Statistics {
    pub(crate) permission: Record,
    pub(crate) size: u64,
    pub(crate) attached: i64,
    pub(crate) detached: i64,
    pub(crate) changed: i64,
    pub(crate) creator: u32,
    pub(crate) last: u32,
    pub(crate) attachments: u64,
    unused: [u64; 2],
}

enum Memory {
    /// Until it is removed.
    Kept(Arc<Backing>),
    /// Only as long as somebody has it attached.
    Attached(Weak<Backing>),
}

pub(crate) struct Segment {
    pub(crate) permission: Permission,
    pub(crate) size: u64,
    memory: Memory,
    is_locked: bool,
    attached: i64,
    detached: i64,
    changed: i64,
    creator: u32,
    last: u32,
}

impl Segment {
    pub(super) fn new(number: i32, size: u64, permission: Permission) -> Self {
        let identity = Identity { device: SEGMENT_DEVICE, inode: number as u64 };
        let name = format!("/SYSV{:08x} (deleted)", permission.key());
        let memory = Memory::Kept(Arc::new(MemoryObject::new(&Kernel, identity, name, size)));
        Self {
            permission,
            size,
            memory,
            is_locked: false,
            attached: 0,
            detached: 0,
            changed: super::seconds(),
            creator: current().process().id(),
            last: 0,
        }
    }

    /// What to map; `None` if it is gone.
    pub(crate) fn memory(&self) -> Option<Arc<Backing>> {
        match &self.memory {
            Memory::Kept(memory) => Some(memory.clone()),
            Memory::Attached(memory) => memory.upgrade(),
        }
    }

    pub(crate) fn attachments(&self) -> u64 {
        self.memory().and_then(|memory| Some(memory.object()?.areas() as u64)).unwrap_or(0)
    }

    /// Pages in memory.
    pub(crate) fn resident_pages(&self) -> u64 {
        self.memory().and_then(|memory| memory.object().map(|object| object.resident_pages() as u64)).unwrap_or(0)
    }

    /// Notes that the caller has attached it.
    pub(crate) fn note_attached(&mut self) {
        self.attached = super::seconds();
        self.last = current().process().id();
    }

    /// Notes that the caller has let go of it.
    pub(crate) fn note_detached(&mut self) {
        self.detached = super::seconds();
        self.last = current().process().id();
    }

    /// From now on it has no key, and goes with its last attachment.
    pub(super) fn remove(&mut self) {
        self.permission.forget_key();
        if let Memory::Kept(memory) = &self.memory {
            self.memory = Memory::Attached(Arc::downgrade(memory));
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(&self.memory, Memory::Attached(memory) if memory.strong_count() == 0)
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.permission.set(change);
        self.changed = super::seconds();
    }

    /// Every page is in memory for good anyway; this only notes what is wanted.
    pub(crate) fn set_locked(&mut self, locked: bool) {
        self.is_locked = locked;
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let removed = if matches!(self.memory, Memory::Attached(_)) { REMOVED } else { 0 };
        let locked = if self.is_locked { LOCKED } else { 0 };
        Statistics {
            permission: self.permission.record(removed | locked),
            size: self.size,
            attached: self.attached,
            detached: self.detached,
            changed: self.changed,
            creator: self.creator,
            last: self.last,
            attachments: self.attachments(),
            unused: [0; 2],
        }
    }
}
