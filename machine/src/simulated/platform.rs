//! The machine as `coherence` sees it.

use std::sync::{Arc, Mutex, Weak};

use coherence::{Asked, CpuId, CpuSet, Crossings, Flush, Platform, RemoteFlush, Space, Tag};
use explorer::Step;

use super::machine::{Build, HiddenGuard, Machine};
use super::remote::Remote;

/// Steps of this machine's own, as numbers for the explorer.
pub(super) fn machine_step() -> Step {
    Step::Machine { number: 0, stores: false }
}

/// How many tags all CPUs share, where there is a broadcast: enough for every space of a scenario.
const SHARED_TAGS: usize = 4;

/// The machine under `coherence`.
pub struct SimulatedPlatform {
    tags: usize,
    /// One for each CPU, if they are counted.
    crossings: Vec<Crossings>,
    is_sampled: bool,
    remote: Remote,
    has_device: bool,
    machine: Mutex<Weak<Machine>>,
}

impl SimulatedPlatform {
    pub(super) fn new(build: &Build) -> Self {
        let counted = if build.crossings { build.cpus } else { 0 };
        let crossings = (0..counted).map(|_| Crossings::new()).collect();
        let (tags, remote, has_device) = (build.tags, build.remote, !build.device.is_empty());
        let (is_sampled, machine) = (build.sampled.is_some(), Mutex::new(Weak::new()));
        SimulatedPlatform { tags, remote, has_device, crossings, is_sampled, machine }
    }

    /// Says whose platform it is.
    pub(super) fn connect(&self, machine: &Arc<Machine>) {
        *self.machine.lock().expect("one thread") = Arc::downgrade(machine);
    }

    fn machine(&self) -> Arc<Machine> {
        self.machine.lock().expect("one thread").upgrade().expect("the machine is there")
    }

    /// An instruction of this CPU about its caches: a step, which serialises.
    fn instruct(&self, name: impl FnOnce() -> String, work: impl FnOnce(&mut HiddenGuard<'_>, usize)) {
        explorer::step(machine_step());
        explorer::serialise();
        work(&mut self.machine().hidden(), explorer::current_cpu());
        explorer::narrate(name);
        if self.is_sampled {
            // Interrupts that cannot be masked come also before the next thing that others could see.
            explorer::step(machine_step());
        }
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

    fn shared_tags(&self) -> usize {
        if self.remote == Remote::Broadcast { SHARED_TAGS } else { 0 }
    }

    fn flush_remotely(&self, order: &RemoteFlush) -> bool {
        self.machine().order_remote(order)
    }

    fn wait_for_remote_flushes(&self) {
        if self.remote == Remote::Broadcast {
            self.machine().wait_for_remote();
        }
    }

    fn flush_before_running(&self, targets: &CpuSet) -> CpuSet {
        self.machine().leave_word(targets)
    }

    fn has_devices(&self) -> bool {
        self.has_device
    }

    fn invalidate_devices(&self, space: &Space, flush: &Flush) {
        self.machine().order_device(space.root(), flush);
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
        let space = self.machine().space_loaded_by(root);
        self.instruct(
            || format!("loads root {:x}{}", root >> 12, if keep { ", keeping what it has" } else { "" }),
            |hidden, cpu| {
                let caches = &mut hidden.caches[cpu];
                (caches.root, caches.walked) = (space, root);
                (caches.tag, caches.root_freed) = (tag.number(), None);
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
                (caches.root, caches.walked) = (0, 0);
                (caches.tag, caches.root_freed) = (Tag::KERNEL.number(), None);
            },
        );
    }

    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        self.crossings.get(cpu.index())
    }

    fn note_interrupt(&self, asked: Asked) {
        let machine = self.machine();
        let mut hidden = machine.hidden();
        if let Some(sentence) = hidden.order.asked(explorer::current_cpu(), asked.barriers) {
            hidden.found(sentence);
        }
    }

    fn serialise(&self) {
        self.instruct(|| "serialises".to_owned(), |hidden, cpu| hidden.order.serialises(cpu));
    }

    fn restart_sequence(&self) {
        self.machine().hidden().order.restarts(explorer::current_cpu());
        explorer::narrate(|| "is to start its sequence again".to_owned());
    }

    fn relax(&self) {
        explorer::wait();
    }
}
