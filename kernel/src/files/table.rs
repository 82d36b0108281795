//! Descriptor tables: from small numbers to open file descriptions.
//!
//! The lowest free number is given out, as POSIX wants. A description taken out of the table is dropped
//! only after the table's lock: dropping one closes pipes and wakes tasks.

use super::{Description, lock};
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// One past the largest descriptor that any limit allows.
pub(crate) const MOST_DESCRIPTORS: usize = 1 << 20;

#[derive(Clone)]
struct Slot {
    description: Arc<Description>,
    close_on_exec: bool,
}

/// The descriptors of a process; threads share one table, `clone` without CLONE_FILES copies it.
#[derive(Default)]
pub(crate) struct FileTable {
    slots: SpinLock<Slots>,
}

#[derive(Default, Clone)]
struct Slots {
    list: Vec<Option<Slot>>,
    /// No slot below this one is free.
    lowest_free: usize,
}

impl Slots {
    fn slot(&self, descriptor: i32) -> Result<&Slot, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        self.list.get(index).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    fn slot_mut(&mut self, descriptor: i32) -> Result<&mut Slot, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        self.list.get_mut(index).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// The lowest free index that is at least `least` and below `limit`.
    fn free_index(&self, least: usize, limit: usize) -> Result<usize, Errno> {
        let start = least.max(self.lowest_free);
        let held = self.list.iter().skip(start).position(Option::is_none);
        let index = start.max(held.map_or(self.list.len(), |distance| start + distance));
        if index < limit { Ok(index) } else { Err(Errno::EMFILE) }
    }

    fn put(&mut self, index: usize, slot: Slot) -> Result<Option<Slot>, Errno> {
        if index >= self.list.len() {
            self.list.try_reserve(index + 1 - self.list.len()).map_err(|_| Errno::ENOMEM)?;
            self.list.resize(index + 1, None);
        }
        if index == self.lowest_free {
            self.lowest_free += 1;
        }
        Ok(self.list[index].replace(slot))
    }

    fn take(&mut self, index: usize) -> Option<Slot> {
        let slot = self.list.get_mut(index)?.take()?;
        self.lowest_free = self.lowest_free.min(index);
        Some(slot)
    }
}

impl FileTable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A copy with the same descriptions, for a new process.
    pub(crate) fn clone_table(&self) -> Self {
        Self { slots: SpinLock::new(self.slots.lock().clone()) }
    }

    /// What `descriptor` stands for.
    pub(crate) fn get(&self, descriptor: i32) -> Result<Arc<Description>, Errno> {
        Ok(self.slots.lock().slot(descriptor)?.description.clone())
    }

    /// Puts a description under the lowest free number that is at least `least` and below `limit`.
    pub(crate) fn insert(
        &self,
        description: Arc<Description>,
        close_on_exec: bool,
        least: usize,
        limit: usize,
    ) -> Result<i32, Errno> {
        let mut slots = self.slots.lock();
        let index = slots.free_index(least, limit.min(MOST_DESCRIPTORS))?;
        slots.put(index, Slot { description, close_on_exec })?;
        Ok(index as i32)
    }

    /// Puts a description under exactly this number and returns the one that had it.
    pub(crate) fn replace(
        &self,
        descriptor: i32,
        description: Arc<Description>,
        close_on_exec: bool,
    ) -> Result<Option<Arc<Description>>, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        let former = self.slots.lock().put(index, Slot { description, close_on_exec })?;
        Ok(former.map(|slot| slot.description))
    }

    /// Takes a descriptor out of the table.
    pub(crate) fn remove(&self, descriptor: i32) -> Result<Arc<Description>, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        let slot = self.slots.lock().take(index).ok_or(Errno::EBADF)?;
        Ok(slot.description)
    }

    pub(crate) fn close_on_exec_flag(&self, descriptor: i32) -> Result<bool, Errno> {
        Ok(self.slots.lock().slot(descriptor)?.close_on_exec)
    }

    pub(crate) fn set_close_on_exec_flag(&self, descriptor: i32, flag: bool) -> Result<(), Errno> {
        self.slots.lock().slot_mut(descriptor)?.close_on_exec = flag;
        Ok(())
    }

    /// Closes what is marked so; called by `execve`.
    pub(crate) fn close_on_exec(&self) {
        let process = crate::process::current().process().id();
        for description in self.take_where(0, usize::MAX, |slot| slot.close_on_exec) {
            lock::release_process(description.inode(), process);
        }
    }

    /// Takes all descriptors in `first..=last` out.
    pub(crate) fn remove_range(&self, first: usize, last: usize) -> Vec<Arc<Description>> {
        self.take_where(first, last, |_| true)
    }

    /// Marks all descriptors in `first..=last` to be closed by `execve`.
    pub(crate) fn mark_range(&self, first: usize, last: usize) {
        let mut slots = self.slots.lock();
        for slot in slots.list.iter_mut().take(last.saturating_add(1)).skip(first).flatten() {
            slot.close_on_exec = true;
        }
    }

    /// The numbers in use.
    pub(crate) fn numbers(&self) -> Vec<i32> {
        let slots = self.slots.lock();
        slots.list.iter().enumerate().filter(|(_, slot)| slot.is_some()).map(|(index, _)| index as i32).collect()
    }

    /// How many slots there are, used or not: `FDSize` in `/proc/PID/status`.
    pub(crate) fn size(&self) -> usize {
        self.slots.lock().list.len().next_multiple_of(64)
    }

    fn take_where(&self, first: usize, last: usize, wanted: impl Fn(&Slot) -> bool) -> Vec<Arc<Description>> {
        let mut slots = self.slots.lock();
        let end = slots.list.len().min(last.saturating_add(1));
        (first..end)
            .filter_map(|index| {
                let chosen = slots.list[index].as_ref().is_some_and(&wanted);
                if chosen { slots.take(index) } else { None }
            })
            .map(|slot| slot.description)
            .collect()
    }
}
