//! One area: a range of addresses that was mapped in one way.

use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::backing::{BackingRef, Identity};
use crate::environment::Environment;
use crate::range::{PAGE_SIZE, PageRange};
use crate::rights::Rights;

bitflags::bitflags! {
    /// What else is known about an area.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AreaFlags: u16 {
        /// Stores are seen by everybody who maps the object, and by forked children.
        const SHARED = 1;
        /// Grows towards lower addresses when touched just below its start (a stack).
        const GROWS_DOWN = 2;
        /// Its pages are not counted against memory when it is made.
        const NO_RESERVE = 4;
        /// `MADV_DONTFORK`.
        const NOT_FORKED = 8;
        /// `MADV_WIPEONFORK`.
        const WIPED_ON_FORK = 16;
        /// `MADV_DONTDUMP`.
        const NOT_DUMPED = 32;
        /// `mlock`.
        const LOCKED = 64;
        /// The heap that `brk` moves.
        const HEAP = 128;
        /// The stack that `execve` made.
        const STACK = 256;
    }
}

/// Where the pages of an area come from.
pub(crate) enum Source<E: Environment> {
    /// Zeroes.
    Anonymous,
    /// An object, from this page of it on.
    Object { backing: BackingRef<E>, first_page: u64 },
}

impl<E: Environment> Clone for Source<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::Object { backing, first_page } => Self::Object {
                backing: backing.clone(),
                first_page: *first_page,
            },
        }
    }
}

impl<E: Environment> Source<E> {
    /// The same source, `pages` further in.
    fn advanced(&self, pages: u64) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::Object { backing, first_page } => Self::Object {
                backing: backing.clone(),
                first_page: first_page.wrapping_add(pages),
            },
        }
    }

    /// Whether `next`, `pages` behind the start of `self`, goes on where `self` ends.
    fn continues_in(&self, pages: u64, next: &Self) -> bool {
        match (self, next) {
            (Self::Anonymous, Self::Anonymous) => true,
            (
                Self::Object { backing, first_page },
                Self::Object {
                    backing: next_backing,
                    first_page: next_page,
                },
            ) => Arc::ptr_eq(backing, next_backing) && first_page.wrapping_add(pages) == *next_page,
            _ => false,
        }
    }
}

/// One area.
pub(crate) struct Area<E: Environment> {
    pub(crate) range: PageRange,
    pub(crate) rights: Rights,
    /// The most that `mprotect` may give: a shared mapping of a file opened for reading never becomes writable.
    pub(crate) may: Rights,
    pub(crate) flags: AreaFlags,
    pub(crate) source: Source<E>,
    /// Whether a page of the area's own may be mapped in it (zeroes written to, or a copy of an object's page). Until
    /// then fork has nothing to copy here. Set under the shared area lock, read and merged under the exclusive one.
    private_pages: AtomicBool,
}

impl<E: Environment> Clone for Area<E> {
    fn clone(&self) -> Self {
        Self {
            range: self.range,
            rights: self.rights,
            may: self.may,
            flags: self.flags,
            source: self.source.clone(),
            private_pages: AtomicBool::new(self.has_private_pages()),
        }
    }
}

impl<E: Environment> Area<E> {
    pub(crate) fn new(
        range: PageRange,
        rights: Rights,
        may: Rights,
        flags: AreaFlags,
        source: Source<E>,
    ) -> Self {
        Self {
            range,
            rights,
            may,
            flags,
            source,
            private_pages: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.flags.contains(AreaFlags::SHARED)
    }

    pub(crate) fn is_private_anonymous(&self) -> bool {
        !self.is_shared() && matches!(self.source, Source::Anonymous)
    }

    /// Whether pages of this area count against memory: the private ones that can be written.
    pub(crate) fn is_accounted(&self) -> bool {
        self.rights.contains(Rights::WRITE)
            && !self.flags.intersects(AreaFlags::SHARED | AreaFlags::NO_RESERVE)
    }

    /// Whether the area counts as data (`RLIMIT_DATA`): private, writable, and no stack.
    pub(crate) fn is_data(&self) -> bool {
        self.rights.contains(Rights::WRITE)
            && !self.flags.intersects(AreaFlags::SHARED | AreaFlags::GROWS_DOWN)
    }

    pub(crate) fn has_private_pages(&self) -> bool {
        self.private_pages.load(Relaxed)
    }

    pub(crate) fn note_private_page(&self) {
        // Looked at first: the line is shared by all CPUs that fault here.
        if !self.has_private_pages() {
            self.private_pages.store(true, Relaxed);
        }
    }

    /// The part of the area inside `range`, which must overlap it.
    pub(crate) fn part(&self, range: PageRange) -> Self {
        self.moved(range.start(), range)
    }

    /// The area as it would be at `target`, of any length, if what is at `address` now came to its start.
    pub(crate) fn moved(&self, address: u64, target: PageRange) -> Self {
        let mut moved = self.clone();
        moved.source = self.source.advanced((address - self.range.start()) / PAGE_SIZE);
        moved.range = target;
        moved
    }

    /// Whether `next` begins where this ends and differs in nothing else.
    pub(crate) fn can_join(&self, next: &Self) -> bool {
        self.range.end() == next.range.start()
            && self.rights == next.rights
            && self.may == next.may
            && self.flags == next.flags
            && self.source.continues_in(self.range.pages(), &next.source)
    }

    /// Takes `next` in, which [`Area::can_join`] allowed.
    pub(crate) fn join(&mut self, next: &Self) {
        self.range = PageRange::between(self.range.start(), next.range.end()).unwrap_or(self.range);
        if next.has_private_pages() {
            self.note_private_page();
        }
    }

    pub(crate) fn snapshot(&self) -> AreaSnapshot {
        let (object, offset) = match &self.source {
            Source::Anonymous => (None, 0),
            Source::Object { backing, first_page } => (
                Some((backing.identity(), backing.name())),
                first_page.wrapping_mul(PAGE_SIZE),
            ),
        };
        AreaSnapshot {
            range: self.range,
            rights: self.rights,
            flags: self.flags,
            offset,
            object,
        }
    }
}

/// An area as `/proc/PID/maps` shows it.
#[derive(Clone, Debug)]
pub struct AreaSnapshot {
    /// Where it lies.
    pub range: PageRange,
    /// What it allows.
    pub rights: Rights,
    /// Shared, heap, stack and so on.
    pub flags: AreaFlags,
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// The object and its name; `None` for anonymous memory.
    pub object: Option<(Identity, String)>,
}
