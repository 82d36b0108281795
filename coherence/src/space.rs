//! What an address space carries for coherence: who it is, how often it changed, and which CPUs hold it.
//!
//! Two sets say which CPUs have its root loaded.
//!
//! ```text
//!                 activate                    go_lazy
//!   (in neither) ----------> active: told of   ------> lazy: told only when
//!        ^                   every change      <------ page tables are freed
//!        |                        |            activate        |
//!        +------------------------+----------------------------+
//!                   leave, or activate another space
//! ```
//!
//! * **A CPU that has the root loaded is in at least one of the sets**, and only the CPU itself enters or leaves them. It
//!   enters the new set before it leaves the old one, and leaves the last one after another root is loaded.
//! * A CPU outside `active` uses no translation of the space until it is back inside and has compared generations.
//! * So a set without a CPU proves something: not in `active` means that the CPU will compare, and in neither means that its
//!   walker is elsewhere. `switch.rs` argues why the sets may be trusted at the moment an initiator reads them.

use core::mem::offset_of;
use core::num::NonZeroU64;

use crate::batch::Batched;
use crate::devices::Devices;
use crate::generation::{AtomicGeneration, Generation};
use crate::registration::{Registration, Registrations};
use crate::rounds::Rounds;
use crate::sync::{AtomicU64, Ordering, Private, constructor};
use crate::{AtomicCpuSet, CpuSet, Tag};

/// Which address space: a number given once and never again, so that a stale tag cannot be taken for a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(NonZeroU64);

impl SpaceId {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(SpaceId)
    }

    /// The number: at least 1.
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// The coherence state of one address space. Its owner keeps it alive while any CPU has it loaded, lazily too.
#[derive(Debug)]
pub struct Space {
    id: SpaceId,
    root: u64,
    /// The number of the tag under which every CPU caches it; 0 if each has its own.
    shared_tag: Private,
    pub(crate) generation: AtomicGeneration,
    pub(crate) active: AtomicCpuSet,
    pub(crate) lazy: AtomicCpuSet,
    pub(crate) gathers: GathersInProgress,
    pub(crate) devices: Devices,
    pub(crate) batched: Batched,
    /// As `batched`, of batches that wait until their frames are needed.
    pub(crate) deferred: Batched,
    pub(crate) registrations: Registrations,
    pub(crate) barriers: Rounds,
    pub(crate) core_barriers: Rounds,
    pub(crate) sequence_barriers: Rounds,
    /// Those on one CPU, which serve nobody else.
    pub(crate) single_barriers: Rounds,
}

impl Space {
    /// Where an observer that reads the machine's memory from outside (an emulator, a debugger) finds the root in a space: the
    /// offset of a 64-bit word in bytes.
    pub const ROOT_OFFSET: usize = offset_of!(Space, root);
    /// As [`ROOT_OFFSET`](Self::ROOT_OFFSET), for the number of gathers that have begun and not yet flushed. While it is 0, no batch
    /// owes a flush, and nobody holds the lock of a page's table, no CPU of the space may use for that page what the tables do not have.
    pub const GATHERS_OFFSET: usize = offset_of!(Space, gathers.0);
    /// As [`ROOT_OFFSET`](Self::ROOT_OFFSET), for a word that is 0 when no batch owes the space a flush.
    pub const BATCHED_OFFSET: usize = offset_of!(Space, batched.0);
    /// As [`BATCHED_OFFSET`](Self::BATCHED_OFFSET), for what waits until a frame is needed: a load through it is no mistake before that.
    pub const DEFERRED_OFFSET: usize = offset_of!(Space, deferred.0);

    constructor! {
        pub(crate) fn new(id: SpaceId, root: u64, shared_tag: Option<Tag>) -> Self {
            let shared_tag = match shared_tag {
                Some(tag) => tag.number() as u64,
                None => 0,
            };
            Space {
                id,
                root,
                shared_tag: Private::new(shared_tag),
                generation: AtomicGeneration::new(),
                active: AtomicCpuSet::new(),
                lazy: AtomicCpuSet::new(),
                gathers: GathersInProgress::new(),
                devices: Devices::new(),
                batched: Batched::new(),
                deferred: Batched::new(),
                registrations: Registrations::new(),
                barriers: Rounds::new(),
                core_barriers: Rounds::new(),
                sequence_barriers: Rounds::new(),
                single_barriers: Rounds::new(),
            }
        }
    }

    /// The identity.
    pub fn id(&self) -> SpaceId {
        self.id
    }

    /// The root that was given to [`new_space`](crate::Coherence::new_space).
    pub fn root(&self) -> u64 {
        self.root
    }

    /// The tag under which every CPU caches this space, if there is one.
    #[inline]
    pub fn shared_tag(&self) -> Option<Tag> {
        Tag::from_shared_number(self.shared_tag.get())
    }

    /// From now on it has none.
    pub(crate) fn take_shared_tag(&self) -> Option<Tag> {
        let tag = self.shared_tag();
        self.shared_tag.set(0);
        tag
    }

    /// The generation reached so far.
    #[inline]
    pub fn generation(&self) -> Generation {
        self.generation.load()
    }

    /// Whether [`register`](crate::Coherence::register) has returned for this, here or for the space that this one inherits from. If it
    /// has, what came before its return is visible.
    pub fn is_registered(&self, registration: Registration) -> bool {
        self.registrations.is_ready(registration)
    }

    /// Takes over what `parent` is registered for: fork. To be called before any CPU activates this space.
    pub fn inherit_registrations(&self, parent: &Space) {
        self.registrations.inherit(&parent.registrations);
    }

    /// The CPUs that are told of every change. Out of date as soon as it is read; for reports and tests.
    pub fn active(&self) -> CpuSet {
        self.active.load(Ordering::Relaxed)
    }

    /// The CPUs that only borrow the space. Out of date as soon as it is read; for reports and tests.
    pub fn lazy(&self) -> CpuSet {
        self.lazy.load(Ordering::Relaxed)
    }
}

impl Drop for Space {
    /// # Panics
    /// With debug assertions, if a CPU still has the root loaded, or a device is attached: its walker would go on through freed
    /// tables.
    fn drop(&mut self) {
        debug_assert!(
            !self.devices.are_attached(),
            "address space {} dropped with a device",
            self.id.number()
        );
        debug_assert!(
            self.active().is_empty() && self.lazy().is_empty(),
            "address space {} dropped while CPUs {:?} (active) and {:?} (lazy) have it loaded",
            self.id.number(),
            self.active(),
            self.lazy(),
        );
    }
}

/// How many gathers of the space have begun and not yet flushed. `gather.rs` says what for.
#[derive(Debug)]
pub(crate) struct GathersInProgress(AtomicU64);

impl GathersInProgress {
    constructor! {
        fn new() -> Self {
            GathersInProgress(AtomicU64::new(0))
        }
    }

    /// Announces a gather, before it takes its first table lock.
    #[inline]
    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there are no more than the caller's own, of those that it could have met under a table's lock. Acquire: if another one is no
    /// longer counted, its flush is over.
    #[inline]
    pub(crate) fn are_at_most(&self, own: u64) -> bool {
        self.0.load(Ordering::Acquire) <= own
    }

    /// Ends a gather whose flush is over. Release: see [`are_at_most`](Self::are_at_most).
    #[inline]
    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
