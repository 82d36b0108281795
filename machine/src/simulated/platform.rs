//! The machine as `coherence` sees it.

use std::sync::{Arc, Mutex, Weak};

use coherence::{CpuId, CpuSet, Platform, Tag};
use explorer::Step;

use super::machine::{HiddenGuard, Machine};

/// Steps of this machine's own, as numbers for the explorer.
pub(super) fn machine_step() -> Step {
    Step::Machine { number: 0, stores: false }
}

/// The machine under `coherence`.
pub struct SimulatedPlatform {
    tags: usize,
    machine: Mutex<Weak<Machine>>,
}

impl SimulatedPlatform {
    pub(super) fn new(tags: usize) -> Self {
        SimulatedPlatform { tags, machine: Mutex::new(Weak::new()) }
    }

    /// Says whose platform it is.
    pub(super) fn connect(&self, machine: &Arc<Machine>) {
        *self.machine.lock().expect("one thread") = Arc::downgrade(machine);
    }

    /// An instruction of this CPU about its caches: a step, which serialises.
    fn instruct(&self, name: impl FnOnce() -> String, work: impl FnOnce(&mut HiddenGuard<'_>, usize)) {
        explorer::step(machine_step());
        explorer::serialise();
        let machine = self.machine.lock().expect("one thread").upgrade().expect("the machine is there");
        work(&mut machine.hidden(), explorer::current_cpu());
        explorer::narrate(name);
    }
}

// SAFETY: an interrupt stays pending until its CPU takes it, and what was stored before is visible by then; the caches drop what they
// are told to, in one step that serialises; `user.rs` alone changes what a CPU has loaded, and keeps it alive.
#[allow(unsafe_code)]
unsafe impl Platform for SimulatedPlatform {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(explorer::current_cpu()).expect("a build has room for its CPUs")
    }

    fn interrupt(&self, targets: &CpuSet) {
        for target in targets {
            explorer::step(machine_step());
            explorer::send_interrupt(target.index());
            explorer::narrate(|| format!("interrupts CPU {target}"));
        }
    }

    fn interrupts_enabled(&self) -> bool {
        !explorer::is_masked()
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let was_masked = explorer::mask(true);
        let result = work();
        explorer::mask(was_masked);
        result
    }

    fn tags(&self) -> usize {
        self.tags
    }

    fn invalidate_page(&self, address: u64) {
        self.instruct(|| format!("drops {address:#x}"), |hidden, cpu| hidden.caches[cpu].drop_page(address));
    }

    fn invalidate_all(&self) {
        self.instruct(
            || "drops everything".to_owned(),
            |hidden, cpu| {
                let tag = hidden.caches[cpu].tag;
                hidden.caches[cpu].drop_tag(tag);
            },
        );
    }

    fn load_root(&self, root: u64, tag: Tag, keep: bool) {
        self.instruct(
            || format!("loads root {:x}{}", root >> 12, if keep { ", keeping what it has" } else { "" }),
            |hidden, cpu| {
                let caches = &mut hidden.caches[cpu];
                (caches.root, caches.tag, caches.root_freed) = (root, tag.number(), None);
                if !keep {
                    caches.drop_tag(tag.number());
                }
            },
        );
    }

    fn load_kernel_root(&self) {
        let has_tags = self.tags > 1;
        self.instruct(
            || "loads the kernel's root".to_owned(),
            |hidden, cpu| {
                let caches = &mut hidden.caches[cpu];
                if !has_tags {
                    caches.drop_tag(caches.tag);
                }
                (caches.root, caches.tag, caches.root_freed) = (0, Tag::KERNEL.number(), None);
            },
        );
    }

    fn relax(&self) {
        explorer::wait();
    }
}
