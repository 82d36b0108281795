//! How often a CPU has crossed between kernel and user mode, where other CPUs can read it.
//!
//! An even count says kernel, an odd one user. A CPU writes only its own, as one of the first things after it has left user mode and
//! as one of the last before it goes back; the count changes with interrupts off.
//!
//! ```text
//!   leave user: count + 1 (release)             enter user: count + 1 (release); FENCE
//! ```
//!
//! **Leaving** needs no fence: whoever reads the new count (acquire) sees all that the CPU did in user mode. Whoever still
//! reads the old one takes the CPU for one in user mode, which costs an interrupt and no more.
//!
//! **Entering** needs one. A reader first does what the CPU must see, fences, and then reads the count. If it misses the
//! crossing, its fence came before the one here, so the CPU's user code sees what the reader did. `barrier.rs` builds on it.

use crate::fault::Fault;
use crate::sync::{AtomicU64, Ordering, constructor, fence};
use crate::{Coherence, CpuId, Platform};

/// One CPU's count. See [`Platform::crossings`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Crossings(AtomicU64);

/// What a count was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing(u64);

impl Crossing {
    pub(crate) const NONE: Self = Crossing(0);

    /// Whether the CPU was in user mode then.
    pub(crate) const fn is_user(self) -> bool {
        self.0 % 2 == 1
    }
}

impl Crossings {
    constructor! {
        /// Of a CPU that starts in the kernel.
        pub fn new() -> Self {
            Crossings(AtomicU64::new(0))
        }
    }

    /// Acquire: if the count says that the CPU has left user mode, all that it did there is visible afterwards.
    pub(crate) fn read(&self) -> Crossing {
        Crossing(self.0.load(Ordering::Acquire))
    }

    /// The next count. The CPU is the only writer, so it needs no atomic step.
    fn cross(&self, ordering: Ordering) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, ordering);
    }
}

impl Default for Crossings {
    fn default() -> Self {
        Crossings::new()
    }
}

impl<P: Platform> Coherence<P> {
    /// Counts this CPU's crossing to user mode, interrupts off. Entry code in assembly does the same by itself: on x86 a
    /// locked increment is both the store and the fence.
    ///
    /// # Panics
    /// If the platform has no [`crossings`](Platform::crossings).
    pub fn enter_user(&self) {
        let crossings = self.crossings_here();
        crossings.cross(Ordering::Release);
        // Full fence, between the count and whatever user code accesses. It pairs with the fences in `barrier.rs` between
        // a caller's accesses and its reading of the count. Without either, the caller could miss the crossing and user
        // code could miss the caller's stores.
        if !self.has_fault(Fault::NoFenceEnteringUser) {
            fence(Ordering::SeqCst);
        }
    }

    /// Counts this CPU's crossing from user mode, interrupts off. On x86 a plain increment has the order that is needed.
    ///
    /// # Panics
    /// If the platform has no [`crossings`](Platform::crossings).
    pub fn leave_user(&self) {
        let relaxed = self.has_fault(Fault::RelaxedLeavingUser);
        self.crossings_here().cross(if relaxed { Ordering::Relaxed } else { Ordering::Release });
    }

    fn crossings_here(&self) -> &Crossings {
        let me = self.platform.current_cpu();
        self.platform.crossings(me).expect("a platform that counts crossings has the counts")
    }

    /// What a CPU's count says, or `None` where the platform keeps none.
    pub(crate) fn crossing(&self, cpu: CpuId) -> Option<Crossing> {
        self.platform.crossings(cpu).map(Crossings::read)
    }
}
