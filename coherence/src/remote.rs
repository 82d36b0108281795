//! Telling other CPUs without interrupting them: broadcasts of the hardware, calls of a hypervisor.
//!
//! ```text
//!  initiator I                                      target T
//!  change the entries
//!  advance the generation: R
//!  fence; read active; [read lazy]
//!  begin the remote flush  -----------------------> drops the range, whatever it is doing, in its own time
//!  flush here, meanwhile
//!  wait until it is done  <------------------------ nothing of it is left, stores made through it are visible
//! ```
//!
//! Everything up to reading the sets is as in `shootdown.rs`, and so is the argument: who is in the sets is a target, and who is
//! not compares generations when it joins (`switch.rs`). Three things are different.
//!
//! **Nobody's generation moves.** A target runs no handler, so it cannot take note, and what it dropped is one range: it says
//! nothing of the requests before. A target's slot therefore stays behind, and when the CPU next enters the space, comes back to it or
//! is interrupted for it, it drops everything, once. Between two such moments it needs no more than the ranges, as each request
//! reaches it: it was in the sets. The same holds for the initiator's own part, which drops the range even if requests are missing
//! from its own count (`decision.rs`), and then claims nothing.
//!
//! **A target may be anywhere, also in the middle of a switch to the space**, with the generation read and the root not yet loaded. An
//! interrupt would wait until the switch is over. A remote flush does not, so it must not ask what the CPU has loaded:
//! it drops what is cached of the space under every tag, or under a tag that all CPUs use for that space and for no other.
//!
//! **Tags that all CPUs share** (`shared_tags.rs`) are what a broadcast goes by, as it cannot know the tags that each CPU chose for itself. A
//! space gets one when it is made, while there are any, and then has it on every CPU. What a CPU keeps under it
//! when it switches away is as old as the slot that the space has there, and is compared when the space is entered again. A space
//! without one is served by interrupts.
//!
//! **Freed tables** need no more: a remote flush drops upper levels like the rest, on the CPUs that borrow the space too, which need
//! not let go of it.
//!
//! **A virtual CPU that does not run** takes no interrupt until it does, which may be milliseconds later. Its hypervisor can drop everything
//! before it lets it run: then it is asked to, and nobody waits. The CPU's generation stays where it was, as above. (What it
//! was doing when it was stopped makes no difference, since all tags and all upper levels go.)
//!
//! **If no other CPU is in the sets nothing is sent**, although CPUs that have switched away may hold entries under the shared tag. They
//! compare; that is what their generations are for, on such a machine too.

use crate::fault::Fault;
use crate::{Coherence, CpuId, CpuSet, Event, Flush, Platform, Reason, Row, Space, Tag};

/// What a machine is asked to drop on other CPUs: see [`Platform::flush_remotely`].
#[derive(Clone, Copy, Debug)]
pub struct RemoteFlush {
    pub(crate) targets: CpuSet,
    pub(crate) root: u64,
    pub(crate) shared_tag: Option<Tag>,
    pub(crate) flush: Flush,
}

impl RemoteFlush {
    /// The CPUs that must have dropped it in the end. This CPU is not among them; it does its own part.
    pub fn targets(&self) -> CpuSet {
        self.targets
    }

    /// The root of the space.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// The tag under which every CPU caches the space, if it has one.
    pub fn shared_tag(&self) -> Option<Tag> {
        self.shared_tag
    }

    /// What to drop: [pages](Flush::span), or everything. If it [frees tables](Flush::frees_tables), upper levels that lead
    /// there must go even where no translation is dropped.
    pub fn flush(&self) -> Flush {
        self.flush
    }
}

/// How the targets of a request hear of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// These must be interrupted.
    pub(crate) interrupted: CpuSet,
    /// The others hear by other means than an interrupt. If false, there are no others.
    pub(crate) elsewise: bool,
    /// A remote flush has begun.
    pub(crate) remote: bool,
}

impl Reach {
    /// All of them must be interrupted.
    pub(crate) fn by_interrupts(targets: CpuSet) -> Self {
        Reach { interrupted: targets, elsewise: false, remote: false }
    }

    /// These need not be interrupted either.
    pub(crate) fn without(self, spared: &CpuSet) -> Self {
        let interrupted = self.interrupted.difference(spared);
        Reach { interrupted, elsewise: self.elsewise || !spared.is_empty(), ..self }
    }

    /// Whether all targets hear by other means, so that nothing is to be sent.
    pub(crate) fn is_settled(&self) -> bool {
        self.elsewise && self.interrupted.is_empty()
    }
}

impl<P: Platform> Coherence<P> {
    /// Decides how each target hears of a request, and begins whatever is not an interrupt.
    pub(crate) fn reach(&self, me: CpuId, space: &Space, flush: Flush, targets: CpuSet) -> Reach {
        let interrupts = Reach::by_interrupts(targets);
        if targets.is_empty() {
            return interrupts;
        }
        let order = RemoteFlush { targets, root: space.root(), shared_tag: space.shared_tag(), flush };
        if !self.platform.flush_remotely(&order) {
            return self.spare(me, targets);
        }
        self.count(me, Row::Event(Event::RemoteFlush));
        self.cpu(me).counters.add(Row::Skipped(Reason::ReachedRemotely), targets.len() as u64);
        Reach { interrupted: CpuSet::EMPTY, elsewise: true, remote: true }
    }

    /// Leaves out virtual CPUs that the hypervisor flushes before they run.
    fn spare(&self, me: CpuId, targets: CpuSet) -> Reach {
        let spared = self.platform.flush_before_running(&targets);
        self.cpu(me).counters.add(Row::Skipped(Reason::FlushedBeforeRunning), spared.len() as u64);
        Reach::by_interrupts(targets).without(&spared)
    }

    /// Waits for what `reach` has begun.
    pub(crate) fn wait_for_remote(&self, reach: &Reach) {
        if reach.remote && !self.has_fault(Fault::RemoteNotAwaited) {
            self.platform.wait_for_remote_flushes();
        }
    }
}
