//! One area: a range of addresses that was mapped in one way.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use intrusive_collections::RBTreeAtomicLink;

use crate::address_space::AddressSpace;
use crate::backing::{BackingRef, Identity};
use crate::environment::Environment;
use crate::mappings::Registration;
use crate::monitor::Watch;
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
        /// `MADV_HUGEPAGE`: large pages wherever there is room.
        const LARGE_PAGES = 1024;
        /// `MADV_NOHUGEPAGE`: no large pages.
        const SMALL_PAGES = 2048;
        /// A monitor wants to hear of pages that are missing ([`Watch::MISSING`]).
        const WATCHED_MISSING = 512;
        /// A monitor wants to hear of stores to pages that it guards ([`Watch::STORES`]).
        const WATCHED_STORES = 4096;
        /// `mlock2`: locked, and its pages are brought in when they are used.
        const LOCKED_ON_FAULT = 16384;
        /// A monitor wants to hear of pages that are there and not mapped ([`Watch::MINOR`]).
        const WATCHED_MINOR = 8192;
    }
}

impl AreaFlags {
    /// Any of the three. An area has one of these if and only if it has a watcher.
    pub(crate) const WATCHED: Self =
        Self::WATCHED_MISSING.union(Self::WATCHED_STORES).union(Self::WATCHED_MINOR);

    pub(crate) fn watching(watch: Watch) -> Self {
        let mut flags = Self::empty();
        flags.set(Self::WATCHED_MISSING, watch.contains(Watch::MISSING));
        flags.set(Self::WATCHED_STORES, watch.contains(Watch::STORES));
        flags.set(Self::WATCHED_MINOR, watch.contains(Watch::MINOR));
        flags
    }
}

/// Where the pages of an area come from.
pub(crate) enum Source<E: Environment> {
    /// Zeroes.
    Anonymous,
    /// An object. The page at address A is the object's page A / 4096 + `distance` (wrapping), so that cutting an
    /// area leaves its source as it is.
    Object { backing: BackingRef<E>, distance: u64 },
}

impl<E: Environment> Clone for Source<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Anonymous => Self::Anonymous,
            Self::Object { backing, distance } => {
                Self::Object { backing: backing.clone(), distance: *distance }
            }
        }
    }
}

impl<E: Environment> Source<E> {
    /// The object from `first_page` on, mapped at `start`.
    pub(crate) fn object(backing: BackingRef<E>, first_page: u64, start: u64) -> Self {
        Self::Object { backing, distance: first_page.wrapping_sub(start / PAGE_SIZE) }
    }

    /// The source of what is at `from` now, when it comes to `to`.
    fn moved(&self, from: u64, to: u64) -> Self {
        let mut moved = self.clone();
        if let Self::Object { distance, .. } = &mut moved {
            *distance = distance.wrapping_add(from / PAGE_SIZE).wrapping_sub(to / PAGE_SIZE);
        }
        moved
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anonymous, Self::Anonymous) => true,
            (
                Self::Object { backing, distance },
                Self::Object { backing: other_backing, distance: other_distance },
            ) => Arc::ptr_eq(backing, other_backing) && distance == other_distance,
            _ => false,
        }
    }
}

/// Which page of an object an address shows.
pub(crate) fn object_page(address: u64, distance: u64) -> u64 {
    (address / PAGE_SIZE).wrapping_add(distance)
}

/// One area. It sits in a tree and is changed there, so what can change is atomic; it is written only under the
/// exclusive area lock (but for `private_pages`), and the lock orders it.
pub(crate) struct Area<E: Environment> {
    pub(crate) link: RBTreeAtomicLink,
    start: AtomicU64,
    end: AtomicU64,
    rights: AtomicU8,
    flags: AtomicU16,
    /// Whether a page of the area's own may be mapped in it (zeroes written to, or a copy of an object's page). Until
    /// then fork has nothing to copy here. Set under the shared area lock, read and merged under the exclusive one.
    private_pages: AtomicBool,
    /// The number of the monitor that watches it, among its space's; 0 is none.
    watcher: AtomicU32,
    /// The most that `mprotect` may give: a shared mapping of a file opened for reading never becomes writable.
    pub(crate) may: Rights,
    pub(crate) source: Source<E>,
    /// Its place in its object's list, from when it is in an address space.
    registration: Option<Registration<E>>,
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
            link: RBTreeAtomicLink::new(),
            start: AtomicU64::new(range.start()),
            end: AtomicU64::new(range.end()),
            rights: AtomicU8::new(rights.bits()),
            flags: AtomicU16::new(flags.bits()),
            private_pages: AtomicBool::new(false),
            watcher: AtomicU32::new(0),
            may,
            source,
            registration: None,
        }
    }

    /// Enters it in its object's list, as it is about to be in a space.
    pub(crate) fn register(&mut self, space: &Weak<AddressSpace<E>>) {
        if let Source::Object { backing, distance } = &self.source {
            self.registration =
                Registration::enter(backing, space, self.range(), *distance, self.is_locked());
        }
    }

    fn is_locked(&self) -> bool {
        self.has_flag(AreaFlags::LOCKED)
    }

    fn follow(&self) {
        if let Some(registration) = &self.registration {
            registration.follow(self.range(), self.is_locked());
        }
    }

    /// An area like this at `target`, of any length, to whose start comes what is at `address` now.
    pub(crate) fn moved(&self, address: u64, target: PageRange) -> Self {
        let source = self.source.moved(address, target.start());
        let moved = Self::new(target, self.rights(), self.may, self.flags(), source);
        moved.private_pages.store(self.has_private_pages(), Relaxed);
        moved.watcher.store(self.watcher(), Relaxed);
        moved
    }

    /// An area like this in the same object, for another range.
    pub(crate) fn with_range(&self, range: PageRange) -> Self {
        self.moved(range.start(), range)
    }

    pub(crate) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Relaxed)
    }

    pub(crate) fn range(&self) -> PageRange {
        PageRange::of_area(self.start(), self.end())
    }

    /// Moves the start, without passing a neighbour.
    pub(crate) fn set_start(&self, start: u64) {
        self.start.store(start, Relaxed);
        self.follow();
    }

    /// Moves the end, without passing a neighbour.
    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Relaxed);
        self.follow();
    }

    pub(crate) fn rights(&self) -> Rights {
        Rights::from_bits_retain(self.rights.load(Relaxed))
    }

    pub(crate) fn set_rights(&self, rights: Rights) {
        self.rights.store(rights.bits(), Relaxed);
    }

    pub(crate) fn flags(&self) -> AreaFlags {
        AreaFlags::from_bits_retain(self.flags.load(Relaxed))
    }

    pub(crate) fn set_flags(&self, flags: AreaFlags) {
        let was_locked = self.is_locked();
        self.flags.store(flags.bits(), Relaxed);
        if self.is_locked() != was_locked {
            self.follow();
        }
    }

    pub(crate) fn has_flag(&self, flag: AreaFlags) -> bool {
        self.flags().contains(flag)
    }

    /// Whether a monitor is told of some of its faults.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.flags().intersects(AreaFlags::WATCHED)
    }

    /// The number of the monitor that is told; 0 is none.
    pub(crate) fn watcher(&self) -> u32 {
        self.watcher.load(Relaxed)
    }

    /// Lets the monitor of that number watch it.
    pub(crate) fn set_watch(&self, watcher: u32, watch: Watch) {
        let flags = self.flags().difference(AreaFlags::WATCHED).union(AreaFlags::watching(watch));
        self.flags.store(flags.bits(), Relaxed);
        self.watcher.store(watcher, Relaxed);
    }

    /// Lets the monitor of that number, in another space, watch it as it was watched.
    pub(crate) fn set_watcher(&self, watcher: u32) {
        self.watcher.store(watcher, Relaxed);
    }

    /// Lets nobody watch it.
    pub(crate) fn clear_watch(&self) {
        self.set_watch(0, Watch::empty());
    }

    /// The object that it maps, and which page of it an address shows.
    pub(crate) fn shown(&self, address: u64) -> Option<(&BackingRef<E>, u64)> {
        match &self.source {
            Source::Anonymous => None,
            Source::Object { backing, distance } => Some((backing, object_page(address, *distance))),
        }
    }

    /// The object that it maps.
    pub(crate) fn backing(&self) -> Option<&BackingRef<E>> {
        match &self.source {
            Source::Anonymous => None,
            Source::Object { backing, .. } => Some(backing),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.has_flag(AreaFlags::SHARED)
    }

    pub(crate) fn is_private_anonymous(&self) -> bool {
        !self.is_shared() && matches!(self.source, Source::Anonymous)
    }

    pub(crate) fn is_unwritable_private(&self) -> bool {
        !self.is_shared() && !self.rights().contains(Rights::WRITE)
    }

    /// Whether pages of this area count against memory: the private ones that can be written.
    pub(crate) fn is_accounted(&self) -> bool {
        self.rights().contains(Rights::WRITE)
            && !self.flags().intersects(AreaFlags::SHARED | AreaFlags::NO_RESERVE)
    }

    /// Whether the area counts as data (`RLIMIT_DATA`): private, writable, and no stack.
    pub(crate) fn is_data(&self) -> bool {
        self.rights().contains(Rights::WRITE)
            && !self.flags().intersects(AreaFlags::SHARED | AreaFlags::GROWS_DOWN)
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

    /// Whether `next` begins where this ends and differs in nothing else.
    pub(crate) fn can_join(&self, next: &Self) -> bool {
        self.end() == next.start()
            && self.rights() == next.rights()
            && self.may == next.may
            && self.flags() == next.flags()
            && self.watcher() == next.watcher()
            && self.source.is_same(&next.source)
    }

    /// Takes over what is known of a neighbour's pages, whose range this area takes over, too.
    pub(crate) fn inherit_pages(&self, neighbour: &Self) {
        if neighbour.has_private_pages() {
            self.note_private_page();
        }
    }

    pub(crate) fn snapshot(&self) -> AreaSnapshot {
        let (object, offset) = match &self.source {
            Source::Anonymous => (None, 0),
            Source::Object { backing, distance } => (
                Some((backing.identity(), backing.name())),
                object_page(self.start(), *distance).wrapping_mul(PAGE_SIZE),
            ),
        };
        let (range, rights, may) = (self.range(), self.rights(), self.may);
        let has_private_pages = self.has_private_pages();
        AreaSnapshot { range, rights, may, flags: self.flags(), has_private_pages, offset, object }
    }
}

/// An area as `/proc/PID/maps` shows it.
#[derive(Clone, Debug)]
pub struct AreaSnapshot {
    /// Where it lies.
    pub range: PageRange,
    /// What it allows.
    pub rights: Rights,
    /// The most that `mprotect` may have it allow.
    pub may: Rights,
    /// Shared, heap, stack and so on.
    pub flags: AreaFlags,
    /// Whether a page of its own may be mapped in it.
    pub has_private_pages: bool,
    /// Offset in the object, in bytes.
    pub offset: u64,
    /// The object and its name; `None` for anonymous memory.
    pub object: Option<(Identity, String)>,
}
