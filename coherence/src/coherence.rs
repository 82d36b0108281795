//! The coherence of one machine: its CPUs, its switches, and the numbers it gives to address spaces.

use crate::cpu::Cpu;
use crate::fault::Fault;
use crate::generation::AtomicGeneration;
use crate::ledger::Counters;
use crate::rounds::Rounds;
use crate::shared_tags::SharedTags;
use crate::sync::{Counter, Private, array_of, constructor};
use crate::{AtomicCpuSet, Cause, CpuId, Flush, Ledger, MAX_CPUS, Platform, Row, Space, SpaceId, Switches};

/// All that the CPUs of a machine share to keep their translations coherent.
///
/// It is some hundred kilobytes large and starts as zeroes: make it a `static`, which `new` allows.
#[derive(Debug)]
pub struct Coherence<P> {
    pub(crate) platform: P,
    cpus: [Cpu; MAX_CPUS],
    spaces: Counter,
    shared_tags: SharedTags,
    /// How many batches have been deferred.
    pub(crate) epochs: AtomicGeneration,
    /// The CPUs that use a space which is registered for everybody's barriers. `barrier.rs` has the rules.
    pub(crate) receivers: AtomicCpuSet,
    pub(crate) global_barriers: Rounds,
    /// [`Switches`] as bits. This and the two below are set before there is anything to keep coherent, so nothing orders them.
    switches: Private,
    ceiling: Private,
    /// 1 + the [`Cause`] whose flushes are left out; 0 for none.
    suppressed: Private,
    #[cfg(any(loom, shuttle, simulated))]
    fault: Option<Fault>,
}

impl<P> Coherence<P> {
    constructor! {
        /// A machine of which no CPU has loaded an address space.
        pub fn new(platform: P, switches: Switches) -> Self {
            Coherence {
                platform,
                cpus: array_of!(Cpu::new()),
                spaces: Counter::new(),
                shared_tags: SharedTags::new(),
                epochs: AtomicGeneration::new(),
                receivers: AtomicCpuSet::new(),
                global_barriers: Rounds::new(),
                switches: Private::new(switches.to_bits()),
                ceiling: Private::new(Flush::DEFAULT_CEILING),
                suppressed: Private::new(0),
                #[cfg(any(loom, shuttle, simulated))]
                fault: None,
            }
        }
    }

    /// The same machine with a mistake in it.
    #[cfg(any(loom, shuttle, simulated))]
    #[must_use]
    pub fn with_fault(self, fault: Option<Fault>) -> Self {
        Coherence { fault, ..self }
    }

    /// Whether a mistake is made on purpose. Constant `false` outside the checkers.
    pub(crate) fn has_fault(&self, fault: Fault) -> bool {
        #[cfg(any(loom, shuttle, simulated))]
        return self.fault == Some(fault);
        #[cfg(not(any(loom, shuttle, simulated)))]
        {
            let _ = fault;
            false
        }
    }

    /// Chooses the mechanisms. To be called while the system starts, before any space is activated.
    pub fn set_switches(&self, switches: Switches) {
        self.switches.set(switches.to_bits());
    }

    /// The mechanisms that are on.
    #[inline]
    pub fn switches(&self) -> Switches {
        Switches::from_bits(self.switches.get())
    }

    /// Chooses up to how many pages a flush goes page by page; 0 makes every flush one of everything. May be changed any time.
    pub fn set_ceiling(&self, pages: u64) {
        self.ceiling.set(pages);
    }

    /// Up to how many pages a flush goes page by page.
    pub fn ceiling(&self) -> u64 {
        self.ceiling.get()
    }

    /// Breaks the machine: from now on, flushes for these causes, and no other ones, are left out, here and on other CPUs.
    ///
    /// For end-to-end tests, which show in this way that they would notice a flush that is missing. The ledger counts each.
    pub fn suppress(&self, causes: impl IntoIterator<Item = Cause>) {
        self.suppressed.set(causes.into_iter().fold(0, |bits, cause| bits | 1 << cause as u64));
    }

    #[inline]
    pub(crate) fn is_suppressed(&self, cause: Cause) -> bool {
        self.suppressed.get() & 1 << cause as u64 != 0
    }

    /// The counters.
    pub fn ledger(&self) -> Ledger<'_> {
        Ledger { cpus: &self.cpus }
    }

    /// The machine underneath.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    pub(crate) fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    pub(crate) fn count(&self, cpu: CpuId, row: Row) {
        self.cpu(cpu).counters.count(row);
    }
}

impl<P: Platform> Coherence<P> {
    /// A new address space with that root. It starts at generation 0, loaded by no CPU.
    ///
    /// The caller keeps it alive as long as a CPU has it loaded, lazily too, and frees its root and tables after it.
    pub fn new_space(&self, root: u64) -> Space {
        let number = self.spaces.add(1) + 1;
        let id = SpaceId::from_number(number).expect("the numbers start at 1 and do not wrap");
        Space::new(id, root, self.shared_tags.take(self.platform.shared_tags()))
    }

    /// Takes back what a space has of the machine: its [shared tag](Platform::shared_tags). To be called when no CPU has the
    /// space loaded any more and none ever will. A machine without shared tags may do without.
    pub fn end_space(&self, space: &Space) {
        if let Some(tag) = space.take_shared_tag() {
            self.shared_tags.give_back(tag);
        }
    }

    /// Counts a fault on an access which the entry in memory already allowed.
    pub fn spurious_fault(&self) {
        self.counters().count(Row::Event(crate::Event::SpuriousFault));
    }

    /// This CPU's counters.
    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        &self.cpu(self.platform.current_cpu()).counters
    }
}
