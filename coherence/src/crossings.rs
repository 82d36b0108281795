//! What mode a CPU is in, where other CPUs can read it, and what it has missed meanwhile.
//!
//! One word: how often the CPU has crossed between kernel and user mode, and a mark. An even count says kernel, an odd one user. A CPU
//! advances its own count, as one of the first things after it has left user mode and as one of the last before it goes back, with
//! interrupts off. The mark is set by others, while the count is even, and taken away by the CPU itself.
//!
//! ```text
//!   leave user: count + 1 (release)             enter user: count + 1 and look at the mark, in one step; FENCE
//! ```
//!
//! **Leaving** needs no fence: whoever reads the new count (acquire) sees all that the CPU did in user mode. Whoever still
//! reads the old one takes the CPU for one in user mode, which costs an interrupt and no more.
//!
//! **Entering** needs one. A reader first does what the CPU must see, fences, and then reads the count. If it misses the
//! crossing, its fence came before the one here, so the CPU's user code sees what the reader did. `barrier.rs` builds on it.
//!
//! **The mark** stands for a flush that the CPU has been spared. A kernel uses no user translation by itself, so an initiator need not
//! wait for a CPU that is in it, if that CPU drops what it missed before it uses one again. The initiator marks it instead, and both
//! act on one word in one step each:
//!
//! ```text
//!  initiator                                    target
//!  advance the generation
//!  fence
//!  if the count is even: set the mark,          count + 1; was the mark set?
//!    unless the count has changed               fence
//!  else: interrupt                              if so: compare generations, flush, take it away
//! ```
//!
//! If the mark comes first, the target finds it, and its fence makes it find the generation. If the count comes first, the mark is
//! not set, and the target is interrupted. Who finds the mark set by another may rely on it: the count that he read with it is
//! before the target's next step, so his fence comes before the target's, and the comparison finds his generation too.
//!
//! The mark goes last, as an interrupt that cannot be masked goes by it (`may_use_user_memory`). Nobody sets it meanwhile: the count is odd.
//!
//! The mark says nothing of which space it is for. A CPU that has switched since compares for the space that it goes back to; of
//! the others it keeps the generation, which is compared when they are entered (`switch.rs`).
//!
//! **Freed tables are another matter**: the walker of a CPU in the kernel runs on. So their flush interrupts it.

use crate::fault::Fault;
use crate::remote::Reach;
use crate::sync::{AtomicU64, Ordering, constructor, fence};
use crate::{Coherence, CpuId, CpuSet, Executed, Platform, Reason, Row, Space};

/// One CPU's mode and mark. See [`Platform::crossings`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Crossings(AtomicU64);

/// The mark is the sign, so that entry code in assembly need not look for it: its increment says whether the result is negative.
const MISSED: u64 = 1 << 63;

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
        Crossing(self.0.load(Ordering::Acquire) & !MISSED)
    }

    /// Of this CPU's own.
    fn is_spared(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word.is_multiple_of(2) || word & MISSED != 0
    }

    /// The CPU is the only writer while the count is odd, so this needs no atomic step.
    fn leave_user(&self, ordering: Ordering) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, ordering);
    }

    /// Says whether the mark was set. Relaxed: the caller fences.
    fn enter_user(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) & MISSED != 0
    }

    /// As `enter_user`, in two steps: wrong, and kept so that the models show that they can tell.
    #[cfg(any(loom, shuttle, simulated))]
    fn enter_user_by_plain_store(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Takes the mark away. Relaxed: as an atomic step, it leaves to whoever reads the result what leaving user mode released.
    fn clear_mark(&self) {
        self.0.fetch_and(!MISSED, Ordering::Relaxed);
    }

    /// Sets the mark if the CPU is in the kernel; says whether it is, and finds the mark before it goes back.
    ///
    /// Acquire, as in `read`: what the CPU did in user mode is over. If the step fails, the CPU crosses at this moment or another
    /// initiator marks it; the latter is as good. Relaxed where it succeeds: the fences of both sides order it.
    fn mark(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        if word % 2 == 1 || word & MISSED != 0 {
            return word.is_multiple_of(2);
        }
        match self.0.compare_exchange(word, word | MISSED, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(now) => now == word | MISSED,
        }
    }

    /// As `mark`, in two steps: wrong, and kept so that the models show that they can tell.
    #[cfg(any(loom, shuttle, simulated))]
    fn mark_by_plain_store(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        if word.is_multiple_of(2) {
            self.0.store(word | MISSED, Ordering::Relaxed);
        }
        word.is_multiple_of(2)
    }
}

impl Default for Crossings {
    fn default() -> Self {
        Crossings::new()
    }
}

impl<P: Platform> Coherence<P> {
    /// Counts this CPU's crossing to user mode, and flushes what it was spared in the kernel. Interrupts off; `loaded` as in
    /// [`handle_requests`](Coherence::handle_requests).
    ///
    /// Entry code in assembly does the same by itself: on x86 a locked increment is both the step and the fence, and if its result is
    /// negative, [`catch_up_in_user_mode`](Coherence::catch_up_in_user_mode) follows.
    ///
    /// # Panics
    /// If the platform has no [`crossings`](Platform::crossings), or the CPU has a space loaded and that is not `loaded`.
    pub fn enter_user(&self, loaded: Option<&Space>) {
        #[cfg(any(loom, shuttle, simulated))]
        if self.has_fault(Fault::PlainEnteringUser) {
            return self.crossings_here().enter_user_by_plain_store();
        }
        let has_missed = self.crossings_here().enter_user();
        // Full fence, between the count and whatever user code accesses, or the generation. It pairs with the fences in `barrier.rs`
        // between a caller's accesses and its reading of the count, and with the initiator's in `shootdown.rs`. Without either,
        // the other side could miss the crossing, and this CPU its stores or its generation.
        if !self.has_fault(Fault::NoFenceEnteringUser) {
            fence(Ordering::SeqCst);
        }
        if has_missed {
            self.catch_up_in_user_mode(loaded);
        }
    }

    /// Flushes what this CPU was spared while it was in the kernel: to be called after the step that counts the crossing to user
    /// mode has found the mark, interrupts off all the while. From that step on the CPU counts as one in user mode, so what is asked of
    /// it meanwhile comes with an interrupt.
    ///
    /// # Panics
    /// As [`enter_user`](Coherence::enter_user).
    #[cold]
    pub fn catch_up_in_user_mode(&self, loaded: Option<&Space>) {
        let me = self.platform.current_cpu();
        self.check_loaded(me, loaded);
        let early = self.has_fault(Fault::MarkTakenAwayFirst);
        if early {
            self.crossings_here().clear_mark();
        }
        let used = loaded.filter(|space| self.uses(me, space) && !self.has_fault(Fault::MarkIgnored));
        if let Some(space) = used {
            let epoch = self.epoch();
            self.freshen(me, space.generation(), Executed::ReturnFull);
            self.reach_epoch(me, epoch);
        }
        if !early {
            self.crossings_here().clear_mark();
        }
    }

    /// Counts this CPU's crossing from user mode, interrupts off. On x86 a plain increment has the order that is needed.
    ///
    /// # Panics
    /// If the platform has no [`crossings`](Platform::crossings).
    pub fn leave_user(&self) {
        let relaxed = self.has_fault(Fault::RelaxedLeavingUser);
        self.crossings_here().leave_user(if relaxed { Ordering::Relaxed } else { Ordering::Release });
    }

    fn crossings_here(&self) -> &Crossings {
        let me = self.platform.current_cpu();
        self.platform.crossings(me).expect("a platform that counts crossings has the counts")
    }

    /// What a CPU's count says, or `None` where the platform keeps none.
    pub(crate) fn crossing(&self, cpu: CpuId) -> Option<Crossing> {
        self.platform.crossings(cpu).map(Crossings::read)
    }

    /// Of those that would be interrupted for a flush that frees no tables, spares the ones in the kernel: they catch up before they go
    /// back to user mode. The caller has advanced the generation and fenced.
    pub(crate) fn spare_kernel(&self, me: CpuId, reach: Reach) -> Reach {
        if !self.spares_kernel() {
            return reach;
        }
        let is_marked = |cpu: &CpuId| self.platform.crossings(*cpu).is_some_and(|word| self.mark(word));
        let spared: CpuSet = reach.interrupted.iter().filter(is_marked).collect();
        self.cpu(me).counters.add(Row::Skipped(Reason::InKernel), spared.len() as u64);
        reach.without(&spared)
    }

    /// Without lazy, a CPU that only borrows the space is a target too, and has to let go of it.
    fn spares_kernel(&self) -> bool {
        self.switches().mode && self.switches().lazy
    }

    fn mark(&self, crossings: &Crossings) -> bool {
        if self.has_fault(Fault::KernelSparedUnmarked) {
            return !crossings.read().is_user();
        }
        #[cfg(any(loom, shuttle, simulated))]
        if self.has_fault(Fault::PlainMark) {
            return crossings.mark_by_plain_store();
        }
        crossings.mark()
    }

    /// Whether initiators do not wait for this CPU, which is in the kernel, or is about to leave it and to flush what it has missed.
    pub(crate) fn is_spared(&self, me: CpuId) -> bool {
        self.spares_kernel() && self.platform.crossings(me).is_some_and(Crossings::is_spared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_set_in_the_kernel_found_on_the_way_back_and_no_crossing() {
        let word = Crossings::new();
        assert!(word.is_spared());
        assert!(!word.enter_user(), "nobody has marked it");
        assert!(!word.mark() && !word.is_spared(), "it is in user mode");
        word.leave_user(Ordering::Release);
        let before = word.read();
        assert!(word.mark() && word.mark(), "another's mark will do");
        assert_eq!(word.read(), before);
        assert!(word.enter_user());
        assert!(word.is_spared(), "it has not made up for it");
        assert!(!word.mark());
        word.clear_mark();
        assert!(!word.is_spared() && word.read().is_user());
        word.leave_user(Ordering::Release);
        assert!(!word.enter_user());
    }
}
