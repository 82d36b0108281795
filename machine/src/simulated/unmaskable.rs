//! A profiler in the handler of interrupts that cannot be masked: it reads a word of whichever space `coherence` says it may use.

use explorer::Step;

use super::machine::SimulatedEnvironment;

impl SimulatedEnvironment {
    /// Takes one sample.
    pub(super) fn sample(&self) {
        let Some((_, address)) = self.0.build.sampled else { return };
        let cpu = explorer::current_cpu();
        let count = self.0.hidden().spaces.len();
        for space in (0..count).map(|number| self.space(number)) {
            if !self.0.coherence.may_use_user_memory(space.space()) {
                continue;
            }
            // Other CPUs may do much between the question and the access.
            explorer::step(Step::Machine { number: address, stores: false });
            let mut hidden = self.0.hidden();
            let (loaded, root) = (hidden.caches[cpu].root, space.space().root());
            if loaded != root {
                hidden.found(format!(
                    "D1, frame safety: CPU {cpu} was told in an interrupt that it may use the space with root {:x}, but walks \
                     from {:x}",
                    root >> 12,
                    loaded >> 12
                ));
            }
            drop(hidden);
            self.peek_at(address);
        }
    }
}
