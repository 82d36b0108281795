//! Restartable sequences on this machine: a load, and a store that commits what was made of it, unless the thread was told to start again.

use coherence::CpuId;
use explorer::Step;

use super::machine::SimulatedEnvironment;
use super::order::{Commit, Scope};

/// What the kernel does to a thread in the middle of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    None,
    /// A timer interrupt, which goes straight back.
    Tick,
}

impl SimulatedEnvironment {
    /// The thread on this CPU adds 1 to a word, in one sequence, or as many as it takes.
    pub(super) fn add_in_sequence(&self, address: u64, disturbance: Disturbance) {
        let cpu = explorer::current_cpu();
        loop {
            {
                let mut hidden = self.0.hidden();
                let root = hidden.caches[cpu].root;
                hidden.order.begin_sequence(cpu, root);
            }
            explorer::narrate(|| "begins a sequence".to_owned());
            let found = self.load(address).expect("it is mapped");
            if disturbance == Disturbance::Tick {
                self.leave_user();
                self.enter_user();
            }
            // Whether it was told to start again and the store are one step: that is what sequences are for.
            explorer::step(Step::Machine { number: address, stores: true });
            let commit = self.0.hidden().order.commit(cpu);
            explorer::observe(u64::from(commit == Commit::StartsAgain));
            match commit {
                Commit::StartsAgain => continue,
                Commit::Stores => {}
                Commit::Breaks(sentence) => self.0.hidden().found(sentence),
            }
            return self.store_in_this_step(address, found + 1);
        }
    }

    /// `membarrier(PRIVATE_EXPEDITED_RSEQ)`.
    pub(super) fn sequence_barrier(&self) {
        let space = self.loaded();
        let root = space.space().root();
        self.barrier_call(
            |_| Scope::Sequences(root, None),
            || self.0.coherence.sequence_barrier(space.space()),
        );
    }

    /// The same for one CPU.
    pub(super) fn sequence_barrier_on(&self, cpu: usize) {
        let space = self.loaded();
        let root = space.space().root();
        let target = CpuId::new(cpu).expect("a scenario has few CPUs");
        self.barrier_call(
            |_| Scope::Sequences(root, Some(cpu)),
            || self.0.coherence.sequence_barrier_on(space.space(), target),
        );
    }

    /// What a kernel owes sequences: a thread that leaves its CPU abandons the one that it is in.
    pub(super) fn abandon_sequence(&self) {
        self.0.hidden().order.restarts(explorer::current_cpu());
    }
}
