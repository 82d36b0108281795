//! One frame of physical memory: its number, and a counted reference to it.

use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::range::PAGE_SIZE;

/// Which frame: its physical address divided by the page size. 32 bits reach 16 TiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(pub(crate) u32);

impl FrameNumber {
    /// The frame that holds a physical address, or `None` above 16 TiB.
    pub fn containing(address: u64) -> Option<Self> {
        u32::try_from(address / PAGE_SIZE).ok().map(Self)
    }

    /// The physical address of the frame's first byte.
    pub const fn address(self) -> u64 {
        self.0 as u64 * PAGE_SIZE
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A counted reference to one frame. The frame stays what it is until the last reference is dropped; page-table
/// entries count as references too (those are held as bare numbers inside `page_table`).
pub struct FrameRef<E: Environment> {
    number: FrameNumber,
    environment: E,
    /// False only while [`FrameRef::into_number`] hands the reference on.
    owned: bool,
}

impl<E: Environment> FrameRef<E> {
    /// A frame with undefined contents.
    ///
    /// # Errors
    /// When no frame can be spared for a user page.
    pub fn allocate(environment: &E) -> Result<Self, OutOfMemory> {
        let number = environment.frames().allocate_user(environment.current_cpu())?;
        Ok(Self { number, environment: environment.clone(), owned: true })
    }

    /// A frame of zeroes.
    ///
    /// # Errors
    /// When no frame can be spared for a user page.
    pub fn zeroed(environment: &E) -> Result<Self, OutOfMemory> {
        let frame = Self::allocate(environment)?;
        environment.frames().zero(frame.number);
        Ok(frame)
    }

    /// One more reference to a frame that the caller knows to be alive (a page-table entry under its lock).
    pub(crate) fn of(environment: &E, number: FrameNumber) -> Self {
        environment.frames().acquire(number);
        Self { number, environment: environment.clone(), owned: true }
    }

    /// The owner of a reference that was given away.
    pub(crate) fn from_number(environment: &E, number: FrameNumber) -> Self {
        Self { number, environment: environment.clone(), owned: true }
    }

    /// Gives the reference away: whoever takes the number owes the release.
    pub(crate) fn into_number(self) -> FrameNumber {
        let mut this = self;
        this.owned = false;
        this.number
    }

    /// Takes the page of a store off the lists, in whose place another may come.
    pub(crate) fn unlist(&self) {
        self.environment.frames().unlist_page(self.number);
    }

    /// Whether this is its only reference. Exact only for a caller that excludes new ones.
    pub(crate) fn is_alone(&self) -> bool {
        self.environment.frames().references(self.number) == 1
    }

    /// Which frame.
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// Copies bytes out of the frame. Panics when they reach beyond its end.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.environment.frames().read(self.number, offset, bytes);
    }

    /// Copies bytes into the frame. Panics when they reach beyond its end.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.environment.frames().write(self.number, offset, bytes);
    }

    /// Fills part of the frame with zeroes. Panics when that reaches beyond its end.
    pub fn clear(&self, offset: usize, length: usize) {
        self.environment.frames().clear(self.number, offset, length);
    }
}

impl<E: Environment> Clone for FrameRef<E> {
    fn clone(&self) -> Self {
        Self::of(&self.environment, self.number)
    }
}

impl<E: Environment> Drop for FrameRef<E> {
    fn drop(&mut self) {
        if self.owned {
            self.environment.frames().release(self.environment.current_cpu(), self.number);
        }
    }
}
