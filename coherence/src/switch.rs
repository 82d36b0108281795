//! Activate, go lazy, come back, leave: what a CPU has loaded, and which sets it is in. Every ordering argument is here or in
//! `shootdown.rs`, and they refer to each other.
//!
//! All of it runs on the CPU itself with interrupts off, so no handler sees a switch half done; a request that comes meanwhile
//! is answered right after.
//!
//! **Joining.** A CPU that is about to use a space does
//!
//! ```text
//!   join active; FENCE; read the generation; flush what the slot is behind; [leave lazy]
//! ```
//!
//! and an initiator does
//!
//! ```text
//!   change entries; advance the generation; FENCE; read active; [read lazy]
//! ```
//!
//! The two fences are ordered one way or the other. If the CPU's comes first, the initiator sees it in `active` and
//! interrupts it. If the initiator's comes first, the CPU reads a generation that includes the request; that read
//! acquires the changed entries too, so what its walker finds after the flush is new. In neither case does it use an old entry
//! after `flush` has returned.
//!
//! **No marker for "switching" is needed.** Linux filters the members of its mask by what each CPU has loaded, and therefore must
//! publish when that is about to change. Here the sets are exact, since a CPU leaves them itself when it switches away, and
//! nothing else is asked: a member is interrupted, whatever it is doing. The price is one locked instruction per set left.
//!
//! **Leaving** happens after the other root is loaded (release), so that whoever misses the CPU in both sets (acquire) knows
//! that its walker is elsewhere. What its slot still holds under another tag is not walked and not used, and is compared at the
//! next joining.
//!
//! **Coming back needs no interrupt.** While lazy the CPU uses no user translation, so that it may hold stale ones; it
//! joins as above. It leaves `lazy` last: an initiator that frees tables reads `active` and then `lazy`, and must find the CPU
//! in one of them or else find its flush done.
//!
//! **Barriers** (`barrier.rs`) rely on the same two moments: a CPU leaves `active` with a release, after what its threads did in user
//! mode, and fences after it has joined, before what they do next.
//!
//! **An interrupt that cannot be masked** (NMI) may find a switch half done. Until the new root is loaded and what was missed is
//! flushed, the CPU is marked as one that uses no space, and [`may_use_user_memory`](Coherence::may_use_user_memory) says no.
//!
//! **Threads of one space** follow each other with nothing to do: nothing was withheld from this CPU.

use crate::fault::Fault;
use crate::sync::{Ordering, fence};
use crate::tags::SlotIndex;
use crate::{Coherence, CpuId, Executed, Generation, Platform, Registration, Row, Space, Switched, Tag};

impl<P: Platform> Coherence<P> {
    /// Makes this CPU use `entering`: loads it, or comes back to it from borrowing it, or does nothing.
    ///
    /// `leaving` is the space of the last `activate` on this CPU, unless it has [left](Coherence::leave) since. Both may be
    /// the same. When this returns, the CPU may let go of what kept `leaving` alive, unless it is the same.
    ///
    /// To be called on the CPU with interrupts off.
    ///
    /// # Panics
    /// If `leaving` is not what the CPU has loaded.
    pub fn activate(&self, leaving: Option<&Space>, entering: &Space) {
        self.activate_at(leaving, entering, (entering.root(), true));
    }

    /// As [`activate`](Self::activate), for a CPU that has upper tables of its own, where `root` leads to the same leaf tables as the space's own root, or to
    /// some of them (`sharers.rs`). With `may_keep` false it drops what it has cached of the space since an earlier time. Says whether it has loaded
    /// the root: not if the CPU has the space loaded, by whatever root.
    ///
    /// # Panics
    /// As `activate`.
    pub fn activate_at(
        &self,
        leaving: Option<&Space>,
        entering: &Space,
        (root, may_keep): (u64, bool),
    ) -> bool {
        let me = self.switching_cpu();
        let private = &self.cpu(me).private.0;
        if private.loaded() == Some(entering.id()) {
            if private.is_lazy() {
                self.come_back(me, entering);
            } else {
                self.count(me, Row::Switched(Switched::Kept));
            }
            return false;
        }
        self.enter(me, leaving, entering, (root, may_keep));
        true
    }

    /// Loads another root of the space that this CPU uses, and drops all that it has cached of it. To be called on the CPU with interrupts off.
    ///
    /// # Panics
    /// If the CPU does not use `loaded`.
    pub fn load_again(&self, loaded: &Space, root: u64) {
        let me = self.switching_cpu();
        self.check_loaded(me, Some(loaded));
        assert!(self.uses(me, loaded), "a CPU loads another root of a space that it does not use");
        let private = &self.cpu(me).private.0;
        let slot = private.slot();
        let (epoch, generation) = (self.epoch(), loaded.generation());
        self.platform.load_root(root, self.tag(loaded, slot), false);
        private.slots.catch_up(slot, generation);
        self.reach_epoch(me, epoch);
        self.count(me, Row::Executed(Executed::SwitchFull));
    }

    /// From now on this CPU only borrows the space it has loaded: it keeps walking its tables, and uses no translation of the
    /// user half before the next [`activate`](Coherence::activate).
    ///
    /// `loaded` as `leaving` in `activate`. To be called on the CPU with interrupts off.
    ///
    /// # Panics
    /// If `loaded` is not what the CPU has loaded.
    pub fn go_lazy(&self, loaded: &Space) {
        let me = self.switching_cpu();
        let private = &self.cpu(me).private.0;
        self.check_loaded(me, Some(loaded));
        if private.loaded().is_none() || private.is_lazy() {
            return;
        }
        private.set_lazy(true);
        self.count(me, Row::Switched(Switched::WentLazy));
        if !self.switches().lazy {
            return;
        }
        if self.has_fault(Fault::LeaveActiveFirst) {
            loaded.active.remove(me, Ordering::Release);
        }
        loaded.lazy.insert(me, Ordering::Relaxed);
        // Release: pairs with the acquire of `active` in `Coherence::targets`. Whoever misses this CPU there finds it in
        // `lazy`. (It need not be a full fence: this CPU reads nothing that an initiator writes.)
        loaded.active.remove(me, self.leaving_active());
        self.follow_registration(me, None);
    }

    /// Loads the kernel root on this CPU, which then has no part in the space any more.
    ///
    /// `loaded` as `leaving` in `activate`; the CPU may let go of what kept it alive when this returns. To be called on the
    /// CPU with interrupts off.
    ///
    /// A flush that began before may have found the CPU in the space, and waits for its answer. So a CPU that goes offline takes
    /// interrupts, with `None` as the loaded space, until every flush that was in progress when this returned is over. A deferred batch is in progress until it is
    /// [redeemed or retired](crate::Deferred).
    ///
    /// # Panics
    /// If `loaded` is not what the CPU has loaded.
    pub fn leave(&self, loaded: &Space) {
        let me = self.switching_cpu();
        self.check_loaded(me, Some(loaded));
        if self.cpu(me).private.0.loaded().is_some() {
            self.let_go(me, loaded);
        }
    }

    /// Whether this CPU may use user translations of `space` at this moment: for an interrupt that cannot be masked (NMI), whose
    /// handler wants to look at a program's stack, say. The answer holds until the handler returns.
    ///
    /// Everybody else knows, from what they have switched to. An NMI may come in the middle of a switch, when another root is
    /// loaded than the kernel's own records say, or while the CPU only borrows the space and has missed what was flushed.
    /// An initiator that waits for this CPU waits until the handler has returned, so what it finds is not freed meanwhile;
    /// and it may find no translation, for it cannot handle a fault. If the handler interrupted the kernel, and initiators do not wait
    /// for such a CPU (the mechanism `mode`), the answer is no.
    pub fn may_use_user_memory(&self, space: &Space) -> bool {
        let me = self.platform.current_cpu();
        self.uses(me, space) && (!self.is_spared(me) || self.has_fault(Fault::UsedInSparedKernel))
    }

    /// Whether this CPU has a space loaded, and does not only borrow it.
    pub(crate) fn uses(&self, me: CpuId, space: &Space) -> bool {
        let private = &self.cpu(me).private.0;
        private.loaded() == Some(space.id()) && !private.is_lazy()
    }

    /// Loads the kernel root and leaves the sets of the loaded space. The slot keeps its generation, and stays behind.
    pub(crate) fn let_go(&self, me: CpuId, loaded: &Space) {
        let private = &self.cpu(me).private.0;
        let was_lazy = private.is_lazy();
        if self.has_fault(Fault::LeaveSetsBeforeLoad) {
            self.leave_sets(me, loaded, was_lazy);
        }
        let unmarked = self.has_fault(Fault::SwitchUnmarked);
        if !unmarked {
            private.set_none();
        }
        let epoch = self.epoch();
        self.platform.load_kernel_root();
        if unmarked {
            private.set_none();
        }
        self.reach_epoch(me, epoch);
        self.leave_sets(me, loaded, was_lazy);
        self.follow_registration(me, None);
        self.count(me, Row::Switched(Switched::Left));
    }

    fn enter(&self, me: CpuId, leaving: Option<&Space>, entering: &Space, (root, may_keep): (u64, bool)) {
        self.check_loaded(me, leaving);
        let private = &self.cpu(me).private.0;
        // The CPU may have let go of what the kernel believes it is leaving, in a handler.
        let left = leaving.filter(|_| private.loaded().is_some());
        let was_lazy = private.is_lazy();

        let epoch = self.epoch();
        let generation = self.join(me, entering, Fault::NoFenceEntering, Fault::GenerationBeforeSetEntering);
        let (slot, held) = private.slots.choose(entering.id(), self.platform.tags());
        let keep = (held
            && may_keep
            && (self.is_fresh(me, slot, generation) || self.has_fault(Fault::NoComparisonEntering)))
            || self.has_fault(Fault::TagKeptForAnother);
        private.slots.assign(slot, entering.id(), generation);
        if let (Some(left), true) = (left, self.has_fault(Fault::LeaveSetsBeforeLoad)) {
            self.leave_sets(me, left, was_lazy);
        }
        if !self.has_fault(Fault::SwitchUnmarked) {
            private.set_none();
        }
        self.platform.load_root(root, self.tag(entering, slot), keep);
        private.set_loaded(entering.id(), slot);
        if self.has_fault(Fault::StaysLazy) {
            private.set_lazy(was_lazy);
        }
        if let Some(left) = left {
            self.leave_sets(me, left, was_lazy);
        }
        self.reach_epoch(me, epoch);
        self.honour_registrations(me, entering);
        self.count(me, Row::Switched(Switched::Entered));
        if !keep {
            self.count(me, Row::Executed(Executed::SwitchFull));
        }
    }

    fn come_back(&self, me: CpuId, entering: &Space) {
        let private = &self.cpu(me).private.0;
        self.count(me, Row::Switched(Switched::CameBack));
        if !self.switches().lazy {
            // It never left `active`, and a flush would have made it let go. A batch's round leaves those that borrow alone.
            if self.switches().batch && !self.has_fault(Fault::BorrowerMissesBatches) {
                self.freshen(me, entering.generation(), Executed::LazyFull);
            }
            private.set_lazy(false);
            return;
        }
        if self.has_fault(Fault::MarkedBeforeFlush) {
            private.set_lazy(false);
        }
        if self.has_fault(Fault::LeaveLazyBeforeFlush) {
            entering.lazy.remove(me, Ordering::Release);
        }
        let epoch = self.epoch();
        let generation =
            self.join(me, entering, Fault::NoFenceComingBack, Fault::GenerationBeforeSetComingBack);
        self.freshen(me, generation, Executed::LazyFull);
        self.reach_epoch(me, epoch);
        private.set_lazy(false);
        // Release: pairs with the acquire of `lazy` in `Coherence::targets`. Whoever misses this CPU there, and missed it in
        // `active` before, finds the flush above done.
        #[cfg(simulated)]
        if self.has_fault(Fault::PlainComingBack) {
            entering.lazy.remove_by_plain_store(me);
            return;
        }
        entering.lazy.remove(me, Ordering::Release);
        self.honour_registrations(me, entering);
    }

    /// Drops what this CPU has cached of the space that it goes back to, if it has missed something.
    pub(crate) fn freshen(&self, me: CpuId, generation: Generation, executed: Executed) {
        let private = &self.cpu(me).private.0;
        let slot = private.slot();
        if !self.is_fresh(me, slot, generation) && !self.has_fault(Fault::NoComparison) {
            self.platform.invalidate_all();
            private.slots.catch_up(slot, generation);
            self.count(me, Row::Executed(executed));
        }
    }

    /// Does what the space that this CPU has joined is registered for. The fence of `join` came before.
    fn honour_registrations(&self, me: CpuId, entering: &Space) {
        if !self.has_fault(Fault::RegistrationNotFollowed) {
            self.follow_registration(me, Some(entering));
        }
        if entering.registrations.is_announced(Registration::Cores)
            && !self.has_fault(Fault::NoSerialiseJoining)
        {
            self.platform.serialise();
        }
    }

    /// Release, in `remove`: who misses this CPU in `active` (with acquire) sees what its threads did in user mode.
    fn leaving_active(&self) -> Ordering {
        if self.has_fault(Fault::RelaxedLeavingActive) { Ordering::Relaxed } else { Ordering::Release }
    }

    /// Joins `active` and reads the generation, in this order for every CPU to see.
    fn join(&self, me: CpuId, entering: &Space, no_fence: Fault, generation_first: Fault) -> Generation {
        let early = self.has_fault(generation_first).then(|| entering.generation());
        #[cfg(simulated)]
        if self.has_fault(Fault::PlainJoin) || self.has_fault(Fault::PlainComingBack) {
            entering.active.insert_by_plain_store(me);
            return entering.generation();
        }
        entering.active.insert(me, Ordering::Relaxed);
        // Full fence, between joining and reading the generation. It pairs with the fence in `Coherence::flush`
        // (shootdown.rs), between advancing the generation and reading `active`. Without either, both could read the old: the
        // initiator an `active` without this CPU, and this CPU a generation without the request. Then nobody would flush it.
        if !self.has_fault(no_fence) {
            fence(Ordering::SeqCst);
        }
        // Acquire (in `load`): what the walker finds from here on is at least as new as the generation.
        early.unwrap_or_else(|| entering.generation())
    }

    /// The tag under which this CPU caches a space: the one that all CPUs share, or the slot's own.
    fn tag(&self, space: &Space, slot: SlotIndex) -> Tag {
        // A machine that has none need not look.
        let shared = if self.platform.shared_tags() == 0 { None } else { space.shared_tag() };
        shared.unwrap_or(slot.tag())
    }

    /// Whether a slot that holds a space has missed nothing up to a generation.
    fn is_fresh(&self, me: CpuId, slot: SlotIndex, generation: Generation) -> bool {
        self.switches().generations && self.cpu(me).private.0.slots.generation(slot) == generation
    }

    /// Leaves the set that the CPU is in. Release: another root was loaded before.
    fn leave_sets(&self, me: CpuId, space: &Space, was_lazy: bool) {
        if was_lazy && self.switches().lazy {
            space.lazy.remove(me, Ordering::Release);
        } else {
            space.active.remove(me, self.leaving_active());
        }
    }

    fn switching_cpu(&self) -> CpuId {
        debug_assert!(
            !self.platform.interrupts_enabled(),
            "an address space was switched with interrupts on"
        );
        self.platform.current_cpu()
    }

    /// The kernel may still name a space that this CPU has let go of since, but not the other way round.
    pub(crate) fn check_loaded(&self, me: CpuId, named: Option<&Space>) {
        let loaded = self.cpu(me).private.0.loaded();
        assert!(
            loaded.is_none() || loaded == named.map(Space::id),
            "CPU {me} has an address space loaded that its kernel does not know of",
        );
    }
}
