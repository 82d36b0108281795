//! Descriptor tables: from small numbers to open file descriptions.
//!
//! The lowest free number is given out, as POSIX wants. A description taken out of the table is dropped
//! only after the table's lock: dropping one closes pipes and wakes tasks. A call that cannot undo what it does keeps a number for
//! itself first (`Reserved`); until it is done that is neither free nor open.

use super::message_queue::QueueFile;
use super::{Description, lock};
use crate::process::current;
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// One past the largest descriptor that any limit allows.
pub(crate) const MOST_DESCRIPTORS: usize = 1 << 20;

#[derive(Clone)]
struct Slot {
    /// None if the number is only reserved.
    description: Option<Arc<Description>>,
    close_on_exec: bool,
}

impl Slot {
    fn of(description: Arc<Description>, close_on_exec: bool) -> Self {
        Self { description: Some(description), close_on_exec }
    }
}

/// What closing a descriptor means to its process besides dropping it.
pub(crate) fn close(description: Arc<Description>) {
    let process = current().process().clone();
    lock::release_process(description.inode(), process.id());
    if let Some(file) = description.file_as::<QueueFile>() {
        file.queue().forget(&process);
    }
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
        self.list.get(index).and_then(Option::as_ref).filter(|slot| slot.description.is_some()).ok_or(Errno::EBADF)
    }

    fn description(&self, descriptor: i32) -> Result<&Arc<Description>, Errno> {
        self.slot(descriptor)?.description.as_ref().ok_or(Errno::EBADF)
    }

    fn slot_mut(&mut self, descriptor: i32) -> Result<&mut Slot, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        let slot = self.list.get_mut(index).and_then(Option::as_mut);
        slot.filter(|slot| slot.description.is_some()).ok_or(Errno::EBADF)
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
        let mut slots = self.slots.lock().clone();
        for index in 0..slots.list.len() {
            // What others have reserved is not theirs here.
            if slots.list[index].as_ref().is_some_and(|slot| slot.description.is_none()) {
                slots.take(index);
            }
        }
        Self { slots: SpinLock::new(slots) }
    }

    /// What `descriptor` stands for.
    pub(crate) fn get(&self, descriptor: i32) -> Result<Arc<Description>, Errno> {
        self.slots.lock().description(descriptor).cloned()
    }

    /// Puts a description under the lowest free number that is at least `least` and below `limit`.
    pub(crate) fn insert(
        &self,
        description: Arc<Description>,
        close_on_exec: bool,
        least: usize,
        limit: usize,
    ) -> Result<i32, Errno> {
        self.put_lowest(Slot::of(description, close_on_exec), least, limit)
    }

    fn put_lowest(&self, slot: Slot, least: usize, limit: usize) -> Result<i32, Errno> {
        let mut slots = self.slots.lock();
        let index = slots.free_index(least, limit.min(MOST_DESCRIPTORS))?;
        slots.put(index, slot)?;
        Ok(index as i32)
    }

    /// Keeps the lowest free number below `limit` for the caller.
    ///
    /// # Errors
    /// EMFILE if there is none; ENOMEM.
    pub(crate) fn reserve(self: Arc<Self>, close_on_exec: bool, limit: usize) -> Result<Reserved, Errno> {
        let number = self.put_lowest(Slot { description: None, close_on_exec }, 0, limit)?;
        Ok(Reserved { table: self, number: Some(number) })
    }

    /// Puts a description under exactly this number and returns the one that had it; EBUSY if it is reserved.
    pub(crate) fn replace(
        &self,
        descriptor: i32,
        description: Arc<Description>,
        close_on_exec: bool,
    ) -> Result<Option<Arc<Description>>, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::EBADF)?;
        let mut slots = self.slots.lock();
        if slots.list.get(index).and_then(Option::as_ref).is_some_and(|slot| slot.description.is_none()) {
            return Err(Errno::EBUSY);
        }
        let former = slots.put(index, Slot::of(description, close_on_exec))?;
        Ok(former.and_then(|slot| slot.description))
    }

    /// Takes a descriptor out of the table.
    pub(crate) fn remove(&self, descriptor: i32) -> Result<Arc<Description>, Errno> {
        let mut slots = self.slots.lock();
        slots.slot(descriptor)?;
        slots.take(descriptor as usize).and_then(|slot| slot.description).ok_or(Errno::EBADF)
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
        self.take_where(0, usize::MAX, |slot| slot.close_on_exec).into_iter().for_each(close);
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
        (0..slots.list.len() as i32).filter(|number| slots.slot(*number).is_ok()).collect()
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
                let chosen = slots.slot(index as i32).is_ok_and(&wanted);
                if chosen { slots.take(index) } else { None }
            })
            .filter_map(|slot| slot.description)
            .collect()
    }
}

/// A number that is kept, until it is given away or this is dropped.
pub(crate) struct Reserved {
    table: Arc<FileTable>,
    number: Option<i32>,
}

impl Reserved {
    /// Has the number stand for a description.
    pub(crate) fn fill(mut self, description: Arc<Description>) -> usize {
        let mut slots = self.table.slots.lock();
        let number = self.number.take().map_or(0, |number| number as usize);
        if let Some(slot) = slots.list.get_mut(number).and_then(Option::as_mut) {
            slot.description = Some(description);
        }
        number
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.table.slots.lock().take(number as usize);
        }
    }
}
