//! What threads do on this machine to agree with each other: crossings between user mode and kernel, barriers, registrations,
//! and code that changes under them.

use coherence::{BarrierFlags, CpuSet, Mode, Platform, Registration};
use explorer::Step;
use memory::{Environment, PAGE_SIZE, PageRange};

use super::machine::SimulatedEnvironment;
use super::order::Scope;
use super::past_bug::KernelMistake;
use super::user::pages;

impl SimulatedEnvironment {
    /// This CPU returns to user mode, if crossings are counted.
    pub(super) fn enter_user(&self) {
        if self.0.build.crossings {
            let was_masked = explorer::mask(true);
            let loaded = self.0.hidden().loaded[explorer::current_cpu()].clone();
            self.0.coherence.enter_user(loaded.as_ref().map(|space| space.space()));
            explorer::mask(was_masked);
        }
    }

    /// This CPU leaves user mode, if it is there and crossings are counted.
    pub(super) fn leave_user(&self) {
        let mode = self.0.hidden().modes[explorer::current_cpu()];
        if self.0.build.crossings && mode == Mode::User {
            let was_masked = explorer::mask(true);
            self.0.coherence.leave_user();
            explorer::mask(was_masked);
        }
    }

    /// What the kernel does for this CPU's thread, which stays on the CPU meanwhile.
    pub(super) fn system_call<R>(&self, work: impl FnOnce() -> R) -> R {
        let is_pinned = self.0.build.kernel_mistake != Some(KernelMistake::CallsMove);
        let could_move = is_pinned.then(|| explorer::preemptible(false));
        self.leave_user();
        let result = work();
        self.enter_user();
        if let Some(could_move) = could_move {
            explorer::preemptible(could_move);
        }
        result
    }

    /// A call with promise B.
    pub(super) fn barrier_call(
        &self,
        scope: impl FnOnce(&super::machine::Hidden) -> Scope,
        work: impl FnOnce(),
    ) {
        self.system_call(|| {
            let id = {
                let mut hidden = self.0.hidden();
                let scope = scope(&hidden);
                hidden.order.begin(explorer::current_cpu(), scope)
            };
            explorer::narrate(|| "begins a barrier".to_owned());
            work();
            let mut hidden = self.0.hidden();
            if let Some(sentence) = hidden.order.end(id) {
                hidden.found(sentence);
            }
            drop(hidden);
            explorer::narrate(|| "its barrier ends".to_owned());
        });
    }

    /// `membarrier(PRIVATE_EXPEDITED)`.
    pub(super) fn barrier(&self) {
        let space = self.loaded();
        let root = space.space().root();
        self.barrier_call(|_| Scope::Space(root), || self.0.coherence.barrier(space.space()));
    }

    /// `membarrier(GLOBAL_EXPEDITED)`.
    pub(super) fn global_barrier(&self) {
        self.barrier_call(|hidden| hidden.order.registered(), || self.0.coherence.global_barrier());
    }

    /// `membarrier(PRIVATE_EXPEDITED_SYNC_CORE)`.
    pub(super) fn core_barrier(&self) {
        let space = self.loaded();
        let root = space.space().root();
        self.barrier_call(|_| Scope::Cores(root), || self.0.coherence.core_barrier(space.space()));
    }

    /// `membarrier(GLOBAL)`: a grace period.
    pub(super) fn delayed_barrier(&self) {
        let me = self.current_cpu();
        let others: CpuSet =
            (0..self.0.build.cpus).filter_map(coherence::CpuId::new).filter(|cpu| *cpu != me).collect();
        let space = self.loaded();
        let flags = BarrierFlags::new(BarrierFlags::DELAYED).expect("it is one of the two");
        let wait = || self.0.coherence.platform().relax();
        self.barrier_call(
            |_| Scope::All,
            || self.0.coherence.barrier_by_flags(space.space(), flags, others, wait),
        );
    }

    /// `membarrier(REGISTER_…)`.
    pub(super) fn register(&self, registration: Registration) {
        let space = self.loaded();
        self.system_call(|| {
            self.0.hidden().order.begin_registration();
            self.0.coherence.register(space.space(), registration);
            self.0
                .hidden()
                .order
                .end_registration(space.space().root(), registration == Registration::Global);
            explorer::narrate(|| format!("has registered for '{}' barriers", registration.name()));
        });
    }

    /// `fork` by a process whose registrations the child takes over; says the child's number.
    pub(super) fn fork_registered(&self, range: PageRange) -> usize {
        let parent = self.loaded();
        let number = self.fork(range);
        let child = self.space(number);
        child.space().inherit_registrations(parent.space());
        self.0.hidden().order.inherits(parent.space().root(), child.space().root());
        number
    }

    /// The program on this CPU executes the instruction at an address: what it finds there. Fetched now, or kept from before.
    pub(super) fn execute(&self, address: u64) -> u64 {
        explorer::step(Step::Machine { number: address, stores: false });
        let cpu = explorer::current_cpu();
        let page = address & !(PAGE_SIZE - 1);
        if self.0.hidden().order.fetched(cpu, address).is_none() {
            self.0.fetch(cpu, address);
        }
        let mut hidden = self.0.hidden();
        let Some((value, dead)) = hidden.order.fetched(cpu, address) else {
            drop(hidden);
            explorer::fail(format!("CPU {cpu} executes at {page:#x}, where nothing is mapped"));
            return 0;
        };
        if let Some(sentence) = dead {
            hidden.found(sentence);
        }
        drop(hidden);
        explorer::observe(value);
        explorer::narrate(|| format!("executes {address:#x}: {value}"));
        value
    }

    /// Maps the pages of a scenario's code, and stores the first version there.
    pub(super) fn map_code(&self, address: u64, version: u64) {
        self.map(pages(address & !(PAGE_SIZE - 1), 1));
        self.store(address, version).expect("it is mapped");
    }
}

impl super::machine::Machine {
    /// Whether a CPU could fetch an instruction that it does not have.
    pub(super) fn could_fetch(&self, hidden: &super::machine::Hidden, cpu: usize, address: u64) -> bool {
        let root = hidden.caches[cpu].root;
        hidden.order.fetched(cpu, address).is_none() && root != 0 && self.physical(root, address).is_some()
    }

    /// A CPU fetches an instruction, as memory has it.
    pub(super) fn fetch(&self, cpu: usize, address: u64) {
        let mut hidden = self.hidden();
        let root = hidden.caches[cpu].root;
        if let Some(physical) = self.physical(root, address) {
            hidden.order.fetch(cpu, root, address, self.word(physical).peek());
        }
    }

    fn physical(&self, root: u64, address: u64) -> Option<u64> {
        let entry = self.entry_in_memory(root, address & !(PAGE_SIZE - 1));
        let is_present = entry & super::caches::PRESENT != 0;
        is_present.then_some((entry & super::caches::FRAME) + address % PAGE_SIZE)
    }
}
