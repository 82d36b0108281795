//! A memory barrier on other CPUs: who must be interrupted for it, and why nobody else.
//!
//! A thread asks for a barrier so that the *other* threads need none. What it did before the call comes before what any of them
//! does after some point of theirs, and what they did before that point comes before what it does after the call. So each
//! other thread needs a point, between the call's beginning and its end, at which its CPU passes a full fence, or which is as good.
//!
//! ```text
//!  caller C                                         CPU of thread T
//!  accesses                                         accesses
//!  FENCE (1)                                        interrupt: FENCE (2), acknowledge (release)
//!  read active (or receivers), read crossings       accesses
//!  interrupt those in user mode; wait (acquire)
//!  accesses
//! ```
//!
//! **A CPU that is interrupted** passes fence (2), which comes after (1) and before C goes on.
//!
//! **A CPU that is in the kernel** (its crossings were read, and were even) need not be. It has left user mode with a release, which the
//! reading acquired: what T did before is visible to C. When it goes back it fences after the crossing (`crossings.rs`), which C
//! missed; so that fence comes after (1), and T sees what C did. T's point is between them. The kernel's own accesses to
//! the program's memory are covered too, as long as no promise is made about the order *within* one system call.
//!
//! **A CPU that does not run the space** (not in `active`) need not be, by the same two steps. It has left the set with a release
//! after T's accesses, in a switch, when it went lazy or when T ended; and to come back it joins and fences
//! (`switch.rs`) before T runs. The litmus families of this handshake are T's switching out, its switching in, the registration of
//! another process, the end of T and a kernel task that takes a space over; `tests/loom` has each.
//!
//! **Without crossings** (a platform may have none) every CPU of the set is interrupted, whatever it does there.
//!
//! **Registered processes** are served on behalf of all by the same argument over another set, `receivers`: the CPUs that use
//! a registered space. A CPU that joins a space fences, looks whether it is registered, joins `receivers` and fences again. Who
//! registers announces it, fences, and tells the CPUs that are in `active`. As the fences are ordered, a CPU sees the announcement
//! or is told.
//!
//! **Fetched instructions** are another matter: no fence makes a CPU forget them, and a return to user mode may not either. So a
//! barrier for them goes to all CPUs of `active`, in the kernel too, each of which serialises in the handler; a
//! CPU that joins a registered space serialises as it joins.
//!
//! **Restartable sequences** (Linux's `rseq`) must be abandoned, whatever else the CPU does: a sequence that a timer interrupted goes on
//! where it was. So this barrier too goes to all CPUs of `active`, in the kernel too, and the handler has the thread that
//! the CPU runs restart its sequence. A CPU that is not in `active` has switched away from the process's threads, which abandon their
//! sequences when that happens; a sequence that begins after it came back is ordered as above.
//!
//! **Callers share rounds** (`rounds.rs`), so that many of them interrupt nobody more often than one after the other would.
//! Nothing is allocated.

use crate::errand::Errand;
use crate::fault::Fault;
use crate::registration::Registration;
use crate::rounds::{Led, Rounds};
use crate::sync::{Ordering, fence};
use crate::{Cause, Coherence, CpuId, CpuSet, Event, Platform, Reason, Row, Space};

impl<P: Platform> Coherence<P> {
    /// A memory barrier on every CPU that runs a thread of `space`.
    ///
    /// To be called with interrupts on, pinned to this CPU, holding no lock for which others wait with interrupts off without
    /// answering requests. Not from an interrupt handler. The same holds for the other barriers and for `register`.
    pub fn barrier(&self, space: &Space) {
        self.share(&space.barriers, Errand::Barrier, |me| self.in_user_mode(me, Self::others(me, space)));
    }

    /// A memory barrier on every CPU that runs a thread of any space registered for [`Registration::Global`].
    pub fn global_barrier(&self) {
        self.share(&self.global_barriers, Errand::Barrier, |me| {
            let mut receivers = self.receivers.load(Ordering::Acquire);
            receivers.remove(me);
            self.in_user_mode(me, receivers)
        });
    }

    /// A memory barrier on every CPU that runs a thread of `space`, this one included, after which each of them fetches
    /// instructions anew. The space must be registered for [`Registration::Cores`].
    pub fn core_barrier(&self, space: &Space) {
        let only_fences = self.has_fault(Fault::CoreBarrierOnlyFences);
        let errand = if only_fences { Errand::Barrier } else { Errand::Serialise };
        self.share(&space.core_barriers, errand, |me| Self::others(me, space));
        // Last: the code may have been written by one of the threads that the barrier has reached.
        if !self.has_fault(Fault::CallerNotSerialised) {
            self.platform.serialise();
        }
    }

    /// A memory barrier on every CPU that runs a thread of `space`, where the thread then abandons the restartable sequence that it may
    /// be in. The caller is in none. The space must be registered for [`Registration::Sequences`].
    pub fn sequence_barrier(&self, space: &Space) {
        self.share(&space.sequence_barriers, Errand::Restart, |me| {
            let others = Self::others(me, space);
            if self.has_fault(Fault::SequencesInKernelSpared) {
                self.in_user_mode(me, others)
            } else {
                others
            }
        });
    }

    /// The same, on one CPU only, if it runs a thread of `space`.
    pub fn sequence_barrier_on(&self, space: &Space, cpu: CpuId) {
        let target = |me| {
            if Self::others(me, space).contains(cpu) { [cpu].into_iter().collect() } else { CpuSet::EMPTY }
        };
        if self.has_fault(Fault::SingleRoundsShared) {
            return self.share(&space.single_barriers, Errand::Restart, target);
        }
        self.alone(&space.single_barriers, &Errand::Restart, target);
    }

    /// Registers a space. When this returns, `space` [is registered](Space::is_registered), and threads that run on any CPU
    /// are reached by the barriers that were registered for.
    pub fn register(&self, space: &Space, registration: Registration) {
        if space.registrations.is_ready(registration) {
            return;
        }
        if self.has_fault(Fault::AnnouncementIsEnough) && space.registrations.is_announced(registration) {
            return;
        }
        space.registrations.announce(registration);
        if registration == Registration::Global && !self.has_fault(Fault::RegistrationNotTold) {
            let me = self.platform.current_cpu();
            self.count(me, Row::Requested(Cause::Membarrier));
            // Full fence, between the announcement and reading `active`. It pairs with the fence in `Coherence::join`
            // (switch.rs), between joining `active` and looking for the announcement.
            fence(Ordering::SeqCst);
            let others = Self::others(me, space);
            if !self.has_fault(Fault::RegistersOthersOnly) && self.uses(me, space) {
                self.platform.without_interrupts(|| self.follow_registration(me, Some(space)));
            }
            self.run_errand(me, &Errand::Barrier, &others);
        }
        space.registrations.complete(registration);
    }

    /// Has an errand run for a caller, by itself or in a round that begins after the call.
    fn share(&self, rounds: &Rounds, errand: Errand, targets: impl FnOnce(CpuId) -> CpuSet) {
        debug_assert!(self.platform.interrupts_enabled(), "a barrier was requested with interrupts off");
        let me = self.platform.current_cpu();
        self.count(me, Row::Requested(Cause::Membarrier));
        // Full fence, between the caller's accesses and reading which round is the latest. It pairs with the leader's, below.
        fence(Ordering::SeqCst);
        if self.has_fault(Fault::NoRounds) {
            return self.run_errand(me, &errand, &targets(me));
        }
        let mut latest = rounds.latest();
        if self.has_fault(Fault::RoundThatBeganBefore) {
            latest = latest.saturating_sub(1);
        }
        let round = loop {
            if rounds.is_over_after(latest) {
                self.count(me, Row::Skipped(Reason::SharedRound));
                return;
            }
            if let Some(round) = rounds.begin() {
                break round;
            }
            self.platform.relax();
        };
        self.lead(me, rounds, round, &errand, targets);
    }

    /// Has an errand run for a caller whose round serves nobody else, and who takes no other's end for its own.
    fn alone(&self, rounds: &Rounds, errand: &Errand, targets: impl FnOnce(CpuId) -> CpuSet) {
        debug_assert!(self.platform.interrupts_enabled(), "a barrier was requested with interrupts off");
        let me = self.platform.current_cpu();
        self.count(me, Row::Requested(Cause::Membarrier));
        let round = loop {
            if let Some(round) = rounds.begin() {
                break round;
            }
            self.platform.relax();
        };
        self.lead(me, rounds, round, errand, targets);
    }

    /// Does the work of a round, and ends it.
    fn lead(
        &self,
        me: CpuId,
        rounds: &Rounds,
        round: Led,
        errand: &Errand,
        targets: impl FnOnce(CpuId) -> CpuSet,
    ) {
        // Full fence (1), after the round has begun and before the sets and the crossings are read. It pairs with the fence in
        // `Coherence::join` (switch.rs) and the one in `enter_user` (crossings.rs). Without either, this could read
        // that a CPU is elsewhere, while its user code reads what was before the caller's accesses.
        if !self.has_fault(Fault::NoFenceBarrier) {
            fence(Ordering::SeqCst);
        }
        if self.is_suppressed(Cause::Membarrier) {
            self.count(me, Row::Event(Event::Suppressed));
        } else {
            self.run_errand(me, errand, &targets(me));
        }
        rounds.end(round);
    }

    fn run_errand(&self, me: CpuId, errand: &Errand, targets: &CpuSet) {
        let ticket = self.send(me, errand, targets, Cause::Membarrier);
        self.wait(me, targets, ticket);
    }

    /// The other CPUs that run a thread of a space. The caller has fenced.
    fn others(me: CpuId, space: &Space) -> CpuSet {
        let mut active = space.active.load(Ordering::Acquire);
        active.remove(me);
        active
    }

    /// Those CPUs of a set that run user code, as far as the platform lets us know.
    fn in_user_mode(&self, me: CpuId, set: CpuSet) -> CpuSet {
        let in_user = |cpu: &CpuId| self.crossing(*cpu).is_none_or(|crossing| crossing.is_user());
        let targets: CpuSet = set.iter().filter(in_user).collect();
        let spared = set.difference(&targets).len() as u64;
        self.cpu(me).counters.add(Row::Skipped(Reason::InKernel), spared);
        targets
    }

    /// Target side: what an errand asks of this CPU. `used` is the space that it uses, if any. Interrupts are off.
    pub(crate) fn pass_barrier(&self, me: CpuId, used: Option<&Space>) {
        // Full fence (2), between what user code accessed before the interrupt and what it accesses after.
        if !self.has_fault(Fault::NoFenceInHandler) {
            fence(Ordering::SeqCst);
        }
        self.follow_registration(me, used);
    }

    /// Makes this CPU a receiver of everybody's barriers, or not, as the space it uses is registered. Interrupts are off.
    ///
    /// The caller has fenced after joining the space. Release: whoever misses this CPU in the set sees what user code did here.
    pub(crate) fn follow_registration(&self, me: CpuId, used: Option<&Space>) {
        let receives = used.is_some_and(|space| space.registrations.is_announced(Registration::Global));
        let private = &self.cpu(me).private.0;
        if receives == private.receives() {
            return;
        }
        private.set_receives(receives);
        if receives {
            self.receivers.insert(me, Ordering::Relaxed);
            // Full fence, between joining `receivers` and whatever user code accesses. It pairs with fence (1).
            if !self.has_fault(Fault::NoFenceReceiving) {
                fence(Ordering::SeqCst);
            }
        } else {
            let relaxed = self.has_fault(Fault::RelaxedLeavingReceivers);
            self.receivers.remove(me, if relaxed { Ordering::Relaxed } else { Ordering::Release });
        }
    }
}
