//! What the kernel has declared, read out of its memory.

use std::mem::offset_of;

use protocol::sanitizer::{
    DIRECT_MAP, Declaration, IMAGE_BASE, KERNEL_PAGES, LoadedSpace, MAGIC, MAX_CPUS, PAGE_BYTES,
};

use crate::guest_memory::GuestMemory;

/// A kernel that declares.
#[derive(Debug)]
pub(crate) struct Declared {
    memory: GuestMemory,
    /// Physical address of its declaration.
    declaration: u64,
}

/// An address space, by the physical address of the kernel's structure for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space(u64);

impl Declared {
    /// A kernel in this memory, whose declaration lies at a physical address.
    ///
    /// # Errors
    /// A sentence when none lies there, or one of another layout.
    pub(crate) fn find(memory: GuestMemory, declaration: u64) -> Result<Self, String> {
        match memory.word(declaration + offset_of!(Declaration, magic) as u64) {
            Some(MAGIC) => Ok(Self { memory, declaration }),
            found => Err(format!(
                "the kernel has no declaration of the sanitizer's kind at {declaration:#x} (found {found:x?})"
            )),
        }
    }

    pub(crate) fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    fn declared(&self, offset: usize) -> u64 {
        self.memory.word(self.declaration + offset as u64).unwrap_or(0)
    }

    /// Physical address of the kernel's own root table, when all else is declared too.
    pub(crate) fn kernel_root(&self) -> Option<u64> {
        Some(self.declared(offset_of!(Declaration, kernel_root))).filter(|root| *root != 0)
    }

    /// The address space that a CPU has loaded.
    pub(crate) fn loaded(&self, cpu: u32) -> Option<Space> {
        let index = usize::try_from(cpu).ok().filter(|cpu| *cpu < MAX_CPUS)?;
        let word = offset_of!(Declaration, loaded) + index * size_of::<LoadedSpace>();
        physical(self.declared(word)).map(Space)
    }

    /// Physical address of a space's root table.
    pub(crate) fn root(&self, space: Space) -> Option<u64> {
        self.memory.word(space.0 + self.declared(offset_of!(Declaration, space_root)))
    }

    /// Operations on a space that have begun and are not flushed yet; all batches that owe it a flush count as one.
    pub(crate) fn changes(&self, space: Space) -> Option<u64> {
        let word = |offset| self.memory.word(space.0 + self.declared(offset));
        let operations = word(offset_of!(Declaration, space_changes))?;
        let batched = word(offset_of!(Declaration, space_batched))?;
        Some(operations + u64::from(batched != 0))
    }

    /// Whether programs of a space may still read a frame through entries that were taken out and are not flushed yet: the flush waits until
    /// the frame is needed.
    pub(crate) fn may_be_read(&self, space: Space, frame: u64) -> bool {
        let deferred = self.memory.word(space.0 + self.declared(offset_of!(Declaration, space_deferred)));
        let waiting = self.metadata(frame).and_then(|metadata| {
            self.memory.half(metadata + self.declared(offset_of!(Declaration, frame_waiting)))
        });
        deferred.is_some_and(|debt| debt != 0) && waiting.is_some_and(|entries| entries != 0)
    }

    /// Physical address of a frame's metadata; `None` for what the kernel does not manage.
    fn metadata(&self, frame: u64) -> Option<u64> {
        let number = frame / PAGE_BYTES;
        if number >= self.declared(offset_of!(Declaration, frame_count)) {
            return None;
        }
        let start = physical(self.declared(offset_of!(Declaration, frames)))?;
        Some(start + number * self.declared(offset_of!(Declaration, frame_stride)))
    }

    /// References that the kernel counts to a frame.
    pub(crate) fn references(&self, frame: u64) -> Option<u32> {
        let metadata = self.metadata(frame)?;
        self.memory.half(metadata + self.declared(offset_of!(Declaration, frame_references)))
    }

    /// Whether somebody holds the lock of the page table in a frame.
    pub(crate) fn is_table_locked(&self, table: u64) -> bool {
        let lock = self
            .metadata(table)
            .map(|metadata| metadata + self.declared(offset_of!(Declaration, frame_lock)));
        lock.and_then(|lock| self.memory.byte(lock)).is_some_and(|lock| lock != 0)
    }
}

/// The physical address behind an address of the kernel's, in its image or in the direct map.
fn physical(address: u64) -> Option<u64> {
    match address {
        IMAGE_BASE.. => Some(address - IMAGE_BASE),
        DIRECT_MAP..KERNEL_PAGES => Some(address - DIRECT_MAP),
        _ => None,
    }
}
