//! What a CPU carries: what it has loaded (its own business), and its letter box (everybody's).
//!
//! The first cache line is private: only this CPU touches it, with interrupts off. The others are shared and each has one
//! kind of writer:
//!
//! * `inbox`: initiators add themselves, the CPU takes all of them out;
//! * `request`: written by this CPU as an initiator, and read by its targets until the last of them has acknowledged;
//! * `acknowledgements[t]`: written by target t alone, read by this CPU alone. A line each, so that a target's write neither
//!   waits for nor disturbs another's;
//! * `reached`: written by this CPU, and read by whoever needs what a deferred batch holds.

use crate::epochs::Reached;
use crate::errand::PostedRequest;
use crate::ledger::Counters;
use crate::sync::{AtomicU64, Line, Ordering, Private, array_of, constructor};
use crate::tags::{SlotIndex, Slots};
use crate::{AtomicCpuSet, CpuId, MAX_CPUS, SpaceId};

/// One CPU's state.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) private: Line<PrivateState>,
    pub(crate) inbox: Line<AtomicCpuSet>,
    pub(crate) request: Line<PostedRequest>,
    acknowledgements: [Line<AtomicU64>; MAX_CPUS],
    pub(crate) reached: Reached,
    pub(crate) counters: Counters,
}

/// What only the CPU itself touches.
#[derive(Debug)]
pub(crate) struct PrivateState {
    /// The number of the space whose root is loaded; 0 for the kernel root.
    loaded: Private,
    /// 1 if the loaded space is only borrowed.
    lazy: Private,
    /// The slot of the loaded space.
    slot: Private,
    /// 1 if the CPU is among those that receive everybody's barriers.
    receives: Private,
    /// The number of this CPU's latest request as an initiator.
    ticket: Private,
    pub(crate) slots: Slots,
}

impl Cpu {
    constructor! {
        pub(crate) fn new() -> Self {
            Cpu {
                private: Line(PrivateState {
                    loaded: Private::new(0),
                    lazy: Private::new(0),
                    slot: Private::new(0),
                    receives: Private::new(0),
                    ticket: Private::new(0),
                    slots: Slots::new(),
                }),
                inbox: Line(AtomicCpuSet::new()),
                request: Line(PostedRequest::new()),
                acknowledgements: array_of!(Line(AtomicU64::new(0))),
                reached: Reached::new(),
                counters: Counters::new(),
            }
        }
    }

    /// Target side: tells this CPU, an initiator, that `target` is done with the request of that ticket.
    ///
    /// Release: what the target did before, above all its invalidations, is done for whoever reads this with acquire.
    pub(crate) fn acknowledge(&self, target: CpuId, ticket: u64) {
        self.acknowledgements[target.index()].0.store(ticket, Ordering::Release);
    }

    /// Initiator side: whether `target` has acknowledged the request of that ticket.
    pub(crate) fn is_acknowledged(&self, target: CpuId, ticket: u64) -> bool {
        self.acknowledgements[target.index()].0.load(Ordering::Acquire) == ticket
    }
}

impl PrivateState {
    /// The space that is loaded, if it is not the kernel root.
    #[inline]
    pub(crate) fn loaded(&self) -> Option<SpaceId> {
        SpaceId::from_number(self.loaded.get())
    }

    #[inline]
    pub(crate) fn slot(&self) -> SlotIndex {
        SlotIndex::from_number(self.slot.get())
    }

    #[inline]
    pub(crate) fn is_lazy(&self) -> bool {
        self.lazy.get() != 0
    }

    #[inline]
    pub(crate) fn set_lazy(&self, lazy: bool) {
        self.lazy.set(u64::from(lazy));
    }

    /// Whether this CPU receives everybody's barriers.
    #[inline]
    pub(crate) fn receives(&self) -> bool {
        self.receives.get() != 0
    }

    #[inline]
    pub(crate) fn set_receives(&self, receives: bool) {
        self.receives.set(u64::from(receives));
    }

    /// Notes that a space has been loaded and is used (not borrowed) from here on.
    #[inline]
    pub(crate) fn set_loaded(&self, space: SpaceId, slot: SlotIndex) {
        self.loaded.set(space.number());
        self.slot.set(slot.number());
        self.set_lazy(false);
    }

    /// Notes that from here on no space may be used on this CPU: the kernel root has been loaded, or another root is about to be.
    #[inline]
    pub(crate) fn set_none(&self) {
        self.loaded.set(0);
        self.set_lazy(false);
    }

    /// A ticket for a new request of this CPU.
    #[inline]
    pub(crate) fn next_ticket(&self) -> u64 {
        let ticket = self.ticket.get() + 1;
        self.ticket.set(ticket);
        ticket
    }
}
