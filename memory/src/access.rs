//! Access to user memory by the kernel.
//!
//! The kernel never uses a user translation: it finds the frame by a walk, and copies through the direct map while it
//! holds the lock of the leaf table. So a CPU in the kernel need not be told of changed translations, and the frame
//! cannot be given away under the copy: whoever takes the entry out needs the same lock. What the entry does not allow
//! is handled as the fault that the program itself would have taken.
//!
//! Addresses are allegations. Those outside user space are answered with [`Fault::NotMapped`]; nothing here panics.

use core::ops::ControlFlow;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Source, object_page};
use crate::backing::Identity;
use crate::entry::Bits;
use crate::environment::Environment;
use crate::error::Fault;
use crate::frame::FrameNumber;
use crate::monitor::Origin;
use crate::range::{PAGE_SIZE, USER_END, round_down};
use crate::rights::Access;
use crate::sync::AtomicU32;

/// What tells apart the words that futexes wait on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FutexKey {
    /// A word of one address space.
    Private {
        /// The space's identity.
        space: u64,
        /// The word's address.
        address: u64,
    },
    /// A word of an object, wherever it is mapped.
    Shared {
        /// The object.
        object: Identity,
        /// The word's offset in it.
        offset: u64,
    },
}

impl<E: Environment> AddressSpace<E> {
    /// Copies from user memory. May sleep.
    ///
    /// # Errors
    /// The first fault; `bytes` is then partly filled.
    pub fn read_user(&self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        let frames = self.environment.frames();
        let mut done = 0;
        self.for_each_part(address, bytes.len(), Access::READ, |frame, offset, length| {
            frames.read(frame, offset, &mut bytes[done..done + length]);
            done += length;
            ControlFlow::Continue(())
        })
    }

    /// Copies to user memory. May sleep.
    ///
    /// # Errors
    /// The first fault; what lies before it is written.
    pub fn write_user(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let frames = self.environment.frames();
        let mut done = 0;
        self.for_each_part(address, bytes.len(), Access::WRITE, |frame, offset, length| {
            frames.write(frame, offset, &bytes[done..done + length]);
            done += length;
            ControlFlow::Continue(())
        })
    }

    /// Fills user memory with zeroes. May sleep.
    ///
    /// # Errors
    /// The first fault; what lies before it is filled.
    pub fn zero_user(&self, address: u64, length: usize) -> Result<(), Fault> {
        let frames = self.environment.frames();
        self.for_each_part(address, length, Access::WRITE, |frame, offset, length| {
            frames.clear(frame, offset, length);
            ControlFlow::Continue(())
        })
    }

    /// Copies from user memory up to and without the first zero byte, and says how long the string is; `None` if
    /// `bytes` was filled before one was met. May sleep.
    ///
    /// # Errors
    /// The first fault before the string's end.
    pub fn read_user_string(&self, address: u64, bytes: &mut [u8]) -> Result<Option<usize>, Fault> {
        let frames = self.environment.frames();
        let (mut done, mut end) = (0, None);
        // Not further than user space goes: the string may end before that.
        let length = bytes.len().min(USER_END.saturating_sub(address) as usize);
        let is_cut = length < bytes.len();
        self.for_each_part(address, length, Access::READ, |frame, offset, length| {
            let part = &mut bytes[done..done + length];
            frames.read(frame, offset, part);
            end = part.iter().position(|byte| *byte == 0).map(|position| done + position);
            done += length;
            if end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if end.is_none() && is_cut { Err(Fault::NotMapped) } else { Ok(end) }
    }

    /// Works on an aligned 32-bit word of user memory, atomically with respect to the program. May sleep before, and
    /// runs `work` under a spinning lock.
    ///
    /// # Errors
    /// The access's fault. A word that is not aligned counts as not mapped.
    pub fn atomic_user<R>(
        &self,
        address: u64,
        access: Access,
        work: impl Fn(&AtomicU32) -> R,
    ) -> Result<R, Fault> {
        loop {
            if let Some(result) = self.try_atomic_user(address, access, &work) {
                return Ok(result);
            }
            if !address.is_multiple_of(4) {
                return Err(Fault::NotMapped);
            }
            self.fault_in(address, access)?;
        }
    }

    /// As [`AddressSpace::atomic_user`], but never sleeps, so that it can be called with other spinning locks held:
    /// `None` if the page is not there now, or the area lock is taken. The caller then lets go of its locks, calls
    /// [`AddressSpace::fault_in`] and tries again.
    pub fn try_atomic_user<R>(
        &self,
        address: u64,
        access: Access,
        work: impl Fn(&AtomicU32) -> R,
    ) -> Option<R> {
        if address >= USER_END || !address.is_multiple_of(4) {
            return None;
        }
        let layout = self.try_shared()?;
        let offset = (address % PAGE_SIZE) as usize;
        self.with_frame(&layout, address, access, |frame| work(self.environment.frames().word(frame, offset)))
    }

    /// Does what a fault of this access would do. May sleep: also waits until nobody changes the areas.
    ///
    /// # Errors
    /// The fault.
    pub fn fault_in(&self, address: u64, access: Access) -> Result<(), Fault> {
        self.resolve(address, access, false, Origin::Kernel)
    }

    /// What a futex at this address is known by. A private futex needs no look at the memory; a shared one is known
    /// by the object that is mapped there, if it is mapped shared. May sleep.
    ///
    /// # Errors
    /// [`Fault::NotMapped`] if the address is none of user space, or `is_shared` and nothing is mapped there.
    pub fn futex_key(&self, address: u64, is_shared: bool) -> Result<FutexKey, Fault> {
        let private = FutexKey::Private { space: self.space().id().number(), address };
        if address >= USER_END {
            return Err(Fault::NotMapped);
        }
        if !is_shared {
            return Ok(private);
        }
        let layout = self.shared();
        let area = layout.areas.find(address).ok_or(Fault::NotMapped)?;
        Ok(match &area.source {
            Source::Object { backing, distance } if area.is_shared() => FutexKey::Shared {
                object: backing.identity(),
                offset: object_page(address, *distance).wrapping_mul(PAGE_SIZE) + address % PAGE_SIZE,
            },
            _ => private,
        })
    }

    /// Runs `work` on the frame of each page of a range of addresses, with the offset and length inside the page,
    /// until it breaks off.
    fn for_each_part(
        &self,
        address: u64,
        length: usize,
        access: Access,
        mut work: impl FnMut(FrameNumber, usize, usize) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let end =
            address.checked_add(length as u64).filter(|end| *end <= USER_END).ok_or(Fault::NotMapped)?;
        let mut next = address;
        let mut layout = self.shared();
        while next < end {
            let offset = (next % PAGE_SIZE) as usize;
            let length = (end - next).min(PAGE_SIZE - offset as u64);
            match self.with_frame(&layout, next, access, |frame| work(frame, offset, length as usize)) {
                Some(ControlFlow::Break(())) => return Ok(()),
                Some(ControlFlow::Continue(())) => next += length,
                None => {
                    // A fault takes the area lock itself, perhaps exclusively.
                    drop(layout);
                    self.fault_in(next, access)?;
                    layout = self.shared();
                }
            }
        }
        Ok(())
    }

    /// Runs `work` on the frame that is mapped at an address, under its table's lock, if the entry allows the access.
    fn with_frame<R>(
        &self,
        layout: &Layout<E>,
        address: u64,
        access: Access,
        work: impl FnOnce(FrameNumber) -> R,
    ) -> Option<R> {
        let page = round_down(address);
        let Some(mut leaf) = layout.tables.leaf(page) else {
            return self.with_large_frame(layout, page, access, work);
        };
        let entry = leaf.entry(page);
        if !entry.permits(access) {
            return None;
        }
        let used = if access.write { Bits::ACCESSED | Bits::DIRTY } else { Bits::ACCESSED };
        if !entry.has(used) {
            // What hardware would have set. Only set, so nothing has to be flushed.
            leaf.update(page, |old| Some(old.with(used)));
        }
        Some(work(entry.frame()))
    }

    /// As [`AddressSpace::with_frame`], where no leaf table is.
    fn with_large_frame<R>(
        &self,
        layout: &Layout<E>,
        page: u64,
        access: Access,
        work: impl FnOnce(FrameNumber) -> R,
    ) -> Option<R> {
        let mut large = layout.tables.large(page)?;
        let entry = large.entry();
        if !entry.permits(access) {
            return None;
        }
        let used = if access.write { Bits::ACCESSED | Bits::DIRTY } else { Bits::ACCESSED };
        if !entry.has(used) {
            large.update(|old| Some(old.with(used)));
        }
        Some(work(entry.piece(page).frame()))
    }
}
