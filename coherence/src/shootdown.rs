//! Request, handle, acknowledge.
//!
//! ```text
//!  initiator I                                      target T
//!  change the entries
//!  advance the generation (release): R
//!  fence  <--- pairs with the fence in switch.rs
//!  read active; then, if tables are freed, lazy
//!  post the request
//!  add I to T's inbox (release) ------------------> interrupt: take the inbox (acquire)
//!  interrupt T, unless its inbox had somebody       read I's request
//!  flush here, meanwhile                            compare generations, invalidate what is missing
//!  wait for T's acknowledgement (acquire) <-------- acknowledge (release)
//! ```
//!
//! **A request is answered exactly once.** I's bit enters T's inbox once, and whoever takes the inbox answers for every bit
//! it took. I posts no new request until all targets of the last one have acknowledged, so a posted request does not change
//! while it can be read.
//!
//! **An interrupt is on its way whenever the inbox is not empty.** An initiator that finds somebody else's bit there sends
//! none: the first one either has sent his or is about to. T empties the inbox in one step, so a bit that comes later finds it
//! empty and brings an interrupt of its own.
//!
//! **When `flush` returns, every CPU either has invalidated the old entries or will do so before it uses the space again.**
//! A target has, since it acknowledges afterwards. A CPU that was not a target was not in `active` when that was read, and
//! `switch.rs` argues that it compares generations when it comes back, and finds R. If tables were freed, no CPU walks them:
//! one that was in neither set had another root loaded, or has flushed since; the others were targets.
//!
//! **A CPU in the kernel is not told**, unless tables are freed: it is marked, and compares generations before it goes back to user
//! mode (`crossings.rs`). No user translation is used there, so for it everything above holds as for one that is not in `active`.
//!
//! **A machine may tell its CPUs without interrupts**, all of them or some: `remote.rs` decides that in one place, for the targets
//! that were read as above, and says why nothing else in this page changes. Those that it leaves are interrupted.
//!
//! **Devices that walk the tables too** are told meanwhile, and waited for: `devices.rs`.
//!
//! **A request may be for a barrier alone** ([`Errand`]); `barrier.rs` says for whom and why. It goes the same way, so a CPU that has
//! an interrupt on its way for the one needs none for the other.
//!
//! **Nobody waits for ever.** An initiator waits with interrupts on, so it answers others while they answer it.

use crate::decision::{Request, Standing, decide, decide_catching_up};
use crate::errand::{Asked, Errand};
use crate::fault::Fault;
use crate::flush::{Extent, PageRange};
use crate::remote::Reach;
use crate::sync::{Ordering, fence};
use crate::{
    Cause, Coherence, CpuId, CpuSet, Event, Executed, Flush, Generation, Mode, Outcome, Platform, Reason,
    Row, SharerSet, Space,
};

/// The generation up to which a finished flush has made every CPU safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlushedGeneration(Generation);

impl FlushedGeneration {
    /// The generation that the request started.
    pub fn generation(self) -> Generation {
        self.0
    }
}

/// Who executes a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Initiator {
        /// The others are told remotely.
        remote: bool,
    },
    Target,
}

impl<P: Platform> Coherence<P> {
    /// Makes sure that no CPU uses the entries of `space` as they were before the caller changed them, in the addresses of
    /// `flush`. Returns when that is so: then frames (and, with [`Flush::freeing_tables`], tables) may have new owners.
    ///
    /// To be called with interrupts on, pinned to this CPU, after the changes are stored, holding no lock for which others wait
    /// with interrupts off without answering requests. Not from an interrupt handler.
    ///
    /// # Panics
    /// With debug assertions, if interrupts are off.
    pub fn flush(&self, space: &Space, flush: Flush, cause: Cause) -> FlushedGeneration {
        self.flush_for(space, flush, cause, SharerSet::EVERYONE)
    }

    /// As [`flush`](Self::flush), where only those sharers may hold the old entries.
    pub(crate) fn flush_for(
        &self,
        space: &Space,
        flush: Flush,
        cause: Cause,
        sharers: SharerSet,
    ) -> FlushedGeneration {
        debug_assert!(self.platform.interrupts_enabled(), "a flush was requested with interrupts off");
        let me = self.platform.current_cpu();
        if self.is_suppressed(cause) {
            self.count(me, Row::Event(Event::Suppressed));
            return FlushedGeneration(space.generation());
        }
        let flush = self.limit(me, flush);
        self.count(me, Row::Requested(cause));

        let generation = self.advance(space);
        // Full fence, after the changes and the advance and before the sets are read. It pairs with the fence in
        // `Coherence::join` (switch.rs), between joining `active` and reading the generation. Without either, both could
        // read the old: the initiator an `active` without the CPU, and the CPU a generation without the request. Then
        // nobody would flush that CPU.
        if !self.has_fault(Fault::NoFenceInitiator) {
            fence(Ordering::SeqCst);
        }
        let targets = self.targets(space, flush, me, sharers);

        let request = Request { space: space.id(), generation, flush };
        let mut posted = request;
        if flush.extent == Extent::All && self.has_fault(Fault::RequestWithoutGeneration) {
            posted.generation = Generation::ZERO;
        }
        let mut reach = self.reach(me, space, flush, targets);
        if !flush.frees_tables() || self.has_fault(Fault::KernelSparedOfTables) {
            reach = self.spare_kernel(me, reach);
        }
        let targets = reach.interrupted;
        let ticket = self.ask(me, &Errand::Flush(posted), &reach, cause);
        let executor = Executor::Initiator { remote: reach.remote };
        // Interrupts are off, lest a request by another CPU moves this CPU's root or generation halfway through.
        self.platform.without_interrupts(|| {
            self.execute(me, Some(space), &request, executor);
        });
        if self.has_fault(Fault::WaitsWithInterruptsOff) {
            self.platform.without_interrupts(|| self.wait(me, &targets, ticket));
        }
        self.tell_devices(me, space, flush);
        self.wait_for_remote(&reach);
        self.wait(me, &targets, ticket);
        if flush.extent == Extent::All && sharers == SharerSet::EVERYONE {
            self.settle_batches(space, generation);
        }
        FlushedGeneration(generation)
    }

    /// Answers the requests of other CPUs: to be called by the handler of the shootdown interrupt, interrupts off.
    ///
    /// `loaded` is the space of the last [`activate`](Coherence::activate) on this CPU, unless it has
    /// [left](Coherence::leave) since. `mode` is what was interrupted; the ledger has a row for each. When it returns, everything
    /// is acknowledged that had been asked of this CPU before it was called; nothing to do is no error.
    ///
    /// # Panics
    /// If the CPU has a space loaded and that is not `loaded`.
    pub fn handle_requests(&self, loaded: Option<&Space>, mode: Mode) {
        let me = self.platform.current_cpu();
        self.count(me, Row::Received(mode));
        let initiators = self.take_inbox(me);
        if initiators.is_empty() {
            self.count(me, Row::Event(Event::EmptyInterrupt));
        }
        self.platform.note_interrupt(self.asked_by(&initiators));
        self.answer(me, loaded, &initiators);
    }

    /// Answers the requests of other CPUs without an interrupt: to be called in every loop that waits with interrupts off.
    ///
    /// `loaded` as in [`handle_requests`](Coherence::handle_requests), which panics alike. Not to be called in the middle of a switch.
    pub fn answer_requests(&self, loaded: Option<&Space>) {
        let me = self.platform.current_cpu();
        let initiators = self.take_inbox(me);
        self.answer(me, loaded, &initiators);
        self.cpu(me).counters.add(Row::Event(Event::AnsweredWaiting), initiators.len() as u64);
    }

    /// The flush that is executed for the one asked for, by the switches and the ceiling.
    pub(crate) fn limit(&self, me: CpuId, flush: Flush) -> Flush {
        if flush.frees_tables() {
            self.count(me, Row::Event(Event::TablesFreed));
        }
        if !self.switches().ranged {
            return flush.limited_to(0);
        }
        let limited = flush.limited_to(self.ceiling());
        if limited != flush {
            self.count(me, Row::Event(Event::OverCeiling));
        }
        limited
    }

    fn advance(&self, space: &Space) -> Generation {
        #[cfg(any(loom, shuttle, simulated))]
        if self.has_fault(Fault::PlainAdvance) {
            return space.generation.advance_by_plain_store();
        }
        space.generation.advance()
    }

    /// The CPUs that must be interrupted.
    ///
    /// Acquire, and `active` before `lazy`: a CPU goes lazy by joining `lazy` and then leaving `active` (release). If it is
    /// missing in `active` for that reason, then this read of `active` makes its bit in `lazy` visible. In the other order it
    /// could slip from the one to the other between the reads, and go on walking freed tables.
    ///
    /// It comes back the other way: joins `active`, fence, compares generations and flushes, leaves `lazy` (release). If it is
    /// missing in `active` since it joins later, its comparison finds this request (the fences), and if it is missing in `lazy`
    /// then this read of `lazy` finds its flush done.
    fn targets(&self, space: &Space, flush: Flush, me: CpuId, sharers: SharerSet) -> CpuSet {
        let early = self.has_fault(Fault::LazyReadFirst).then(|| space.lazy.load(Ordering::Acquire));
        let mut active = space.active.load(Ordering::Acquire);
        let mut lazy = early.unwrap_or_else(|| space.lazy.load(Ordering::Acquire));
        active.remove(me);
        lazy.remove(me);
        if flush.frees_tables() && !self.has_fault(Fault::LazyNotToldOfTables) {
            return self.sharing(me, sharers, active.union(&lazy));
        }
        self.cpu(me).counters.add(Row::Skipped(Reason::LazyCpu), lazy.difference(&active).len() as u64);
        self.sharing(me, sharers, active)
    }

    /// As [`send`](Self::send), to those who do not hear of it by other means.
    pub(crate) fn ask(&self, me: CpuId, errand: &Errand, reach: &Reach, cause: Cause) -> u64 {
        if reach.is_settled() { 0 } else { self.send(me, errand, &reach.interrupted, cause) }
    }

    /// Posts a request and interrupts its targets, save those with an interrupt on its way. Returns the request's ticket.
    #[inline]
    pub(crate) fn send(&self, me: CpuId, errand: &Errand, targets: &CpuSet, cause: Cause) -> u64 {
        let ticket = self.cpu(me).private.0.next_ticket();
        if targets.is_empty() {
            self.count(me, Row::Skipped(Reason::NoOtherCpu));
        } else {
            self.post_and_interrupt(me, errand, ticket, targets, cause);
        }
        ticket
    }

    fn post_and_interrupt(&self, me: CpuId, errand: &Errand, ticket: u64, targets: &CpuSet, cause: Cause) {
        let cpu = self.cpu(me);
        cpu.request.0.post(errand, ticket);
        // Release: whoever takes the bit reads the request, and finds the changes of the tables when it walks them.
        // All words of an inbox are emptied by one handler, but each is enough to bring an interrupt.
        let is_lost = |target: &CpuId| {
            self.has_fault(Fault::RequestLost)
                && !self.cpu(*target).inbox.0.load(Ordering::Relaxed).is_empty()
        };
        let interrupted: CpuSet = targets
            .iter()
            .filter(|target| !is_lost(target))
            .filter(|target| self.cpu(*target).inbox.0.insert(me, Ordering::Release))
            .collect();
        cpu.counters.add(Row::Sent(cause), interrupted.len() as u64);
        cpu.counters
            .add(Row::Skipped(Reason::InterruptPending), targets.difference(&interrupted).len() as u64);
        if !interrupted.is_empty() {
            self.platform.interrupt(&interrupted);
        }
    }

    /// Waits, with interrupts on, until every target has acknowledged.
    #[inline]
    pub(crate) fn wait(&self, me: CpuId, targets: &CpuSet, ticket: u64) {
        for target in targets {
            while !self.cpu(me).is_acknowledged(target, ticket) {
                self.platform.relax();
            }
        }
    }

    /// Empties this CPU's inbox. Acquire: pairs with the release in `post_and_interrupt`.
    fn take_inbox(&self, me: CpuId) -> CpuSet {
        self.cpu(me).inbox.0.take(Ordering::Acquire)
    }

    /// What those initiators ask for, by kind.
    fn asked_by(&self, initiators: &CpuSet) -> Asked {
        let barriers =
            initiators.iter().filter(|initiator| !self.cpu(*initiator).request.0.is_flush()).count() as u64;
        Asked { flushes: initiators.len() as u64 - barriers, barriers }
    }

    /// Answers initiators that have been taken out of this CPU's inbox.
    fn answer(&self, me: CpuId, loaded: Option<&Space>, initiators: &CpuSet) {
        self.check_loaded(me, loaded);
        for initiator in initiators {
            let (errand, ticket) = self.cpu(initiator).request.0.read();
            if self.has_fault(Fault::EarlyAcknowledgement) {
                self.cpu(initiator).acknowledge(me, ticket);
            }
            self.run(me, loaded, &errand);
            if !self.has_fault(Fault::EarlyAcknowledgement) {
                self.cpu(initiator).acknowledge(me, ticket);
            }
        }
    }

    /// Target side: does what one initiator asks for. Interrupts are off.
    fn run(&self, me: CpuId, loaded: Option<&Space>, errand: &Errand) {
        match errand {
            Errand::Flush(request) => return self.execute(me, loaded, request, Executor::Target),
            Errand::CatchUp => return self.catch_up(me, loaded),
            Errand::Barrier | Errand::Serialise | Errand::Restart => {}
        }
        let private = &self.cpu(me).private.0;
        let is_used = private.loaded().is_some() && !private.is_lazy();
        let without_fence =
            self.has_fault(Fault::SerialiseWithoutFence) && !matches!(errand, Errand::Barrier);
        if !without_fence {
            self.pass_barrier(me, loaded.filter(|_| is_used));
        }
        match errand {
            Errand::Serialise if self.has_fault(Fault::NoSerialiseInHandler) => {}
            Errand::Serialise => self.platform.serialise(),
            Errand::Restart => self.platform.restart_sequence(),
            Errand::Barrier | Errand::Flush(_) | Errand::CatchUp => {}
        }
        self.count(me, Row::Handled(Outcome::Barrier));
    }

    /// Does on this CPU what a request calls for, if `space` (or any) is loaded. Interrupts are off.
    fn execute(&self, me: CpuId, space: Option<&Space>, request: &Request, executor: Executor) {
        let cpu = self.cpu(me);
        let private = &cpu.private.0;
        let remote = executor == Executor::Initiator { remote: true };
        let standing = Standing { remote, ..self.standing(me) };
        let epoch = self.epoch();
        let current = || space.expect("the loaded space is known to its CPU").generation();
        let (mut outcome, caught_up) = decide(&standing, request, current);
        if outcome == Outcome::FullBehind && self.has_fault(Fault::NoGapRule) {
            outcome = Outcome::Ranged;
        }
        if self.has_fault(Fault::ClaimsCurrent)
            && outcome == Outcome::FullBehind
            && request.generation == standing.caught_up.next()
        {
            outcome = Outcome::Ranged;
        }
        let range = match request.flush.extent {
            Extent::Range(range) => Some(range),
            Extent::All => None,
        };
        match (outcome, range) {
            (Outcome::Ranged, Some(range)) => self.invalidate_range(me, &range, executor),
            (Outcome::Ranged | Outcome::FullRequested | Outcome::FullBehind, _) => {
                self.platform.invalidate_all();
                self.reach_epoch(me, epoch);
                cpu.counters.count(Row::Executed(match executor {
                    Executor::Initiator { .. } => Executed::LocalFull,
                    Executor::Target => Executed::RemoteFull,
                }));
            }
            (Outcome::LeftLazy, _) => self.let_go(me, space.expect("a borrowed space is known to its CPU")),
            (
                Outcome::KernelRoot
                | Outcome::NotLoaded
                | Outcome::Covered
                | Outcome::StayedLazy
                | Outcome::Barrier,
                _,
            ) => {}
        }
        private.slots.catch_up(private.slot(), caught_up);
        if outcome == Outcome::Ranged && self.has_fault(Fault::RemoteClaims) {
            private.slots.catch_up(private.slot(), current());
        }
        if outcome == Outcome::NotLoaded && self.has_fault(Fault::ForeignFlushClaims) {
            private.slots.catch_up(private.slot(), request.generation);
        }
        if executor == Executor::Target {
            cpu.counters.count(Row::Handled(outcome));
        }
    }

    /// Target side of a batch's round.
    fn catch_up(&self, me: CpuId, space: Option<&Space>) {
        let cpu = self.cpu(me);
        let private = &cpu.private.0;
        let epoch = self.epoch();
        let current = || space.expect("the loaded space is known to its CPU").generation();
        let (outcome, caught_up) = decide_catching_up(&self.standing(me), current);
        if let Outcome::FullBehind | Outcome::FullRequested = outcome {
            self.platform.invalidate_all();
            cpu.counters.count(Row::Executed(Executed::RemoteFull));
            private.slots.catch_up(private.slot(), caught_up);
        }
        // Also if nothing is loaded, or only borrowed: generations are compared before something is used.
        self.reach_epoch(me, epoch);
        cpu.counters.count(Row::Handled(outcome));
    }

    /// What a decision of this CPU depends on.
    fn standing(&self, me: CpuId) -> Standing {
        let private = &self.cpu(me).private.0;
        Standing {
            loaded: private.loaded(),
            lazy: private.is_lazy(),
            caught_up: private.slots.generation(private.slot()),
            generations: self.switches().generations,
            remote: false,
        }
    }

    pub(crate) fn invalidate_range(&self, me: CpuId, range: &PageRange, executor: Executor) {
        range.addresses().for_each(|address| self.platform.invalidate_page(address));
        let (ranged, pages) = match executor {
            Executor::Initiator { .. } => (Executed::LocalRanged, Executed::LocalPages),
            Executor::Target => (Executed::RemoteRanged, Executed::RemotePages),
        };
        self.count(me, Row::Executed(ranged));
        self.cpu(me).counters.add(Row::Executed(pages), range.pages());
    }
}
