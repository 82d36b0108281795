//! The machine: its RAM, its CPUs' caches, the library under check, and the oracle that watches.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

use coherence::{Coherence, CpuId, Mode, Switches};
use explorer::{AtomicU64, Declaration, Digest, Hardware, Step, Store};
use lock_api::RawMutex;
use memory::{
    AddressSpace, Environment, FrameNumber, Frames, LargePolicy, MemoryObject, PAGE_SIZE, Swap, Waiting,
};

use super::caches::{Caches, TABLE_REACH};
use super::hypervisor::{Hypervisor, VirtualCpu};
use super::locks::{AreaLock, TableLock};
use super::monitor::SimulatedMonitor;
use super::operation::OperationId;
use super::oracle::Oracle;
use super::order::Order;
use super::past_bug::{HardwareMistake, KernelMistake};
use super::platform::SimulatedPlatform;
use super::remote::{OnItsWay, Remote};
use super::swapping::SwapContent;

/// Frames of RAM: enough for what the scenarios map, and little, as it is cleared for each run.
const RAM: usize = 128 * PAGE_SIZE as usize;
/// Bytes of RAM where large pages are in play: two of them, and what is smaller before them.
const LARGE_RAM: usize = 3 * TABLE_REACH as usize;

/// An address space on this machine.
pub(super) type SimulatedSpace = AddressSpace<SimulatedEnvironment>;

/// An object on this machine.
pub(super) type SimulatedObject = MemoryObject<SimulatedEnvironment>;

/// What each run's machine is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    pub(super) cpus: usize,
    pub(super) tags: usize,
    pub(super) switches: Switches,
    /// Whether walkers run ahead of their CPUs.
    pub(super) walkers: bool,
    /// Pages that walkers run ahead to.
    pub(super) pages: &'static [u64],
    /// Whether crossings between user mode and kernel are counted.
    pub(super) crossings: bool,
    /// Whether there is RAM for large pages, and whoever has room for one gets one.
    pub(super) large_pages: bool,
    /// Instructions that CPUs fetch ahead of executing them.
    pub(super) code: &'static [u64],
    /// The address that interrupts which cannot be masked read, and where they come.
    pub(super) sampled: Option<(usize, u64)>,
    pub(super) fault: Option<coherence::Fault>,
    pub(super) kernel_mistake: Option<KernelMistake>,
    pub(super) remote: Remote,
    /// Pages of which entries leave a CPU's caches by themselves.
    pub(super) forgotten: &'static [u64],
    pub(super) hypervisor: Hypervisor,
    /// The pages at which a device works, if there is one.
    pub(super) device: &'static [u64],
    pub(super) mistake: Option<HardwareMistake>,
}

/// The machine.
pub struct Machine {
    pub(super) coherence: Coherence<SimulatedPlatform>,
    pub(super) frames: Frames<TableLock>,
    pub(super) swap: Swap<SimulatedEnvironment>,
    waiting: Waiting<SimulatedEnvironment>,
    pub(super) build: Build,
    /// Over the tables of the small kernel.
    pub(super) small_lock: TableLock,
    /// How many arrivals each CPU's own orders still wait for.
    pub(super) remote_left: Vec<AtomicU64>,
    /// Who watches what scenarios let be watched.
    pub(super) monitor: Arc<SimulatedMonitor>,
    hidden: Mutex<Hidden>,
    ram: &'static [AtomicU64],
}

/// What no program and no kernel can look into.
pub(super) struct Hidden {
    pub(super) caches: Vec<Caches>,
    pub(super) oracle: Oracle,
    pub(super) order: Order,
    pub(super) spaces: Vec<Arc<SimulatedSpace>>,
    pub(super) objects: Vec<Arc<SimulatedObject>>,
    /// The first word of each page of each object as it was written out last.
    pub(super) disk: BTreeMap<(usize, u64), u64>,
    /// What is in the slots of swap.
    pub(super) swap: SwapContent,
    pub(super) loaded: Vec<Option<Arc<SimulatedSpace>>>,
    pub(super) modes: Vec<Mode>,
    /// Invalidations that have not arrived everywhere.
    pub(super) on_their_way: Vec<OnItsWay>,
    pub(super) virtual_cpus: Vec<VirtualCpu>,
    /// The hypervisor refuses the next call.
    pub(super) refuses: bool,
    /// Free frames when the machine was new.
    pub(super) free: usize,
    /// Frames that a scenario keeps from everybody.
    pub(super) kept: Vec<FrameNumber>,
    found: Option<String>,
}

impl Hidden {
    /// The oracle speaks.
    pub(super) fn found(&mut self, sentence: String) {
        self.found.get_or_insert(sentence);
    }
}

/// `Hidden`, borrowed. What was found is said when it is given back.
pub(super) struct HiddenGuard<'a>(MutexGuard<'a, Hidden>);

impl std::ops::Deref for HiddenGuard<'_> {
    type Target = Hidden;
    fn deref(&self) -> &Hidden {
        &self.0
    }
}

impl std::ops::DerefMut for HiddenGuard<'_> {
    fn deref_mut(&mut self) -> &mut Hidden {
        &mut self.0
    }
}

impl Drop for HiddenGuard<'_> {
    fn drop(&mut self) {
        if let Some(sentence) = self.0.found.take() {
            explorer::fail(sentence);
        }
    }
}

/// The machine as `memory` sees it, and as the explorer does.
#[derive(Clone)]
pub struct SimulatedEnvironment(pub(super) Arc<Machine>);

thread_local! {
    /// RAM, which the runs on this thread use one after the other.
    static MEMORY: &'static [AtomicU64] = fresh_ram();
}

fn fresh_ram() -> &'static [AtomicU64] {
    let words = LARGE_RAM / 8 + PAGE_SIZE as usize / 8;
    let whole: &'static [AtomicU64] = Box::leak((0..words).map(|_| AtomicU64::new(0)).collect());
    let start = whole.as_ptr().align_offset(PAGE_SIZE as usize);
    &whole[start..start + LARGE_RAM / 8]
}

impl SimulatedEnvironment {
    pub(super) fn new(build: Build) -> Self {
        let bytes = if build.large_pages { LARGE_RAM } else { RAM };
        let ram = &MEMORY.with(|ram| *ram)[..bytes / 8];
        // What large pages are made of is cleared, or copied to, when it is.
        clear(&ram[..bytes.min(TABLE_REACH as usize) / 8]);
        explorer::region(ram.as_ptr() as usize, bytes);
        let hidden = Hidden {
            caches: (0..build.cpus + usize::from(!build.device.is_empty()))
                .map(|_| Caches::default())
                .collect(),
            oracle: Oracle::new(build.cpus),
            order: Order::new(build.cpus),
            spaces: Vec::new(),
            objects: Vec::new(),
            disk: BTreeMap::new(),
            swap: SwapContent::default(),
            loaded: vec![None; build.cpus],
            modes: vec![Mode::Idle; build.cpus],
            on_their_way: Vec::new(),
            virtual_cpus: vec![VirtualCpu::default(); build.cpus],
            refuses: false,
            free: 0,
            kept: Vec::new(),
            found: None,
        };
        let platform = SimulatedPlatform::new(&build);
        let machine = Arc::new(Machine {
            coherence: Coherence::new(platform, build.switches).with_fault(build.fault),
            frames: Frames::empty(),
            swap: Swap::new(),
            waiting: Waiting::new(),
            build,
            small_lock: TableLock::INIT,
            remote_left: (0..build.cpus).map(|_| AtomicU64::new(0)).collect(),
            monitor: SimulatedMonitor::new(),
            hidden: Mutex::new(hidden),
            ram,
        });
        machine.coherence.platform().connect(&machine);
        let environment = SimulatedEnvironment(machine);
        // From here on the oracle hears who owns a frame.
        explorer::attach(Rc::new(environment.clone()));
        initialize(&environment.0.frames, ram);
        if build.large_pages {
            environment.0.frames.large_pages().set_policy(LargePolicy::Always);
        }
        let free = environment.0.frames.statistics().free;
        environment.0.hidden().free = free;
        environment
    }
}

#[allow(unsafe_code)]
fn clear(ram: &'static [AtomicU64]) {
    // SAFETY: all of these atomics are used by this thread alone, and by nobody between two runs.
    unsafe { ram.as_ptr().cast::<u8>().cast_mut().write_bytes(0, size_of_val(ram)) };
}

#[allow(unsafe_code)]
fn initialize(frames: &Frames<TableLock>, ram: &'static [AtomicU64]) {
    let usable = PAGE_SIZE..size_of_val(ram) as u64;
    // SAFETY: `ram` is page-aligned, has so many bytes and is never freed; on this thread one machine at a time uses it.
    unsafe { frames.initialize(ram.as_ptr() as *mut u8, std::slice::from_ref(&usable)) };
}

impl Machine {
    pub(super) fn hidden(&self) -> HiddenGuard<'_> {
        HiddenGuard(
            self.hidden.lock().expect("the machine is used by one thread, which does not panic in it"),
        )
    }

    /// A word of physical memory.
    pub(super) fn word(&self, physical: u64) -> &AtomicU64 {
        &self.ram[physical as usize / 8]
    }

    /// What a frame holds, as far as programs here write to it.
    fn digest_of(&self, frame: u64) -> Digest {
        (0..4).fold(Digest::EMPTY, |digest, word| digest.with(self.word(frame + word * 8).peek()))
    }

    /// Ends a call. What is cached is held against the tables.
    pub(super) fn end_operation(&self, id: OperationId) {
        let mut hidden = self.hidden();
        let Hidden { oracle, caches, .. } = &mut *hidden;
        if let Some(ended) = oracle.end(id, |root, page| self.entry_in_memory(root, page), caches) {
            oracle.mark_ways(&ended, |root, page, level| self.table_in_memory(root, page, level), caches);
        }
    }
}

impl Environment for SimulatedEnvironment {
    type Platform = SimulatedPlatform;
    type AreaLock = AreaLock;
    type TableLock = TableLock;
    type Monitor = SimulatedMonitor;

    fn coherence(&self) -> &Coherence<SimulatedPlatform> {
        &self.0.coherence
    }

    fn frames(&self) -> &Frames<TableLock> {
        &self.0.frames
    }

    fn swap(&self) -> &Swap<Self> {
        &self.0.swap
    }

    fn waiting(&self) -> &Waiting<Self> {
        &self.0.waiting
    }

    fn fill_kernel_half(&self, _upper_half: &[AtomicU64]) {}

    fn current_cpu(&self) -> CpuId {
        CpuId::new(explorer::current_cpu()).expect("a build has room for its CPUs")
    }
}

impl Hardware for SimulatedEnvironment {
    fn events(&self, _next: &Step, events: &mut Vec<u64>) {
        self.0.list_events(events);
    }

    fn due(&self, events: &mut Vec<u64>) {
        self.0.list_due(events);
    }

    fn perform(&self, event: u64) {
        self.0.perform_event(event);
    }

    fn interrupt(&self) {
        let cpu = explorer::current_cpu();
        let (loaded, mode) = {
            let hidden = self.0.hidden();
            (hidden.loaded[cpu].clone(), hidden.modes[cpu])
        };
        self.0.coherence.handle_requests(loaded.as_ref().map(|space| space.space()), mode);
    }

    fn unmaskable(&self) {
        self.sample();
    }

    fn state(&self) -> Digest {
        let hidden = self.0.hidden();
        let caches =
            hidden.caches.iter().fold(Digest::EMPTY, |digest, cache| digest.with(cache.state().number()));
        let digest = caches.with(hidden.oracle.state().number()).with(hidden.order.state().number());
        let digest = digest.with(u64::from(hidden.refuses)).with(hidden.swap.state().number());
        let cpus = hidden.virtual_cpus.iter();
        let digest = cpus.fold(digest, |digest, cpu| digest.with(cpu.state().number()));
        hidden.on_their_way.iter().fold(digest, |digest, way| digest.with(way.state().number()))
    }

    fn stored(&self, store: &Store) {
        if store.note != 0 {
            let mut hidden = self.0.hidden();
            hidden.order.store_lands(store.cpu);
            if let Some(sentence) = hidden.oracle.store_lands(store.cpu) {
                hidden.found(sentence);
            }
        }
    }

    fn declared(&self, declaration: Declaration) {
        let cpu = explorer::current_cpu();
        let mut hidden = self.0.hidden();
        let Hidden { oracle, caches, .. } = &mut *hidden;
        match declaration {
            Declaration::Given(frame) => oracle.frame_given(frame),
            Declaration::Taken(frame) => oracle.frame_taken(frame, cpu, caches),
            Declaration::Copied(frame) => {
                oracle.frame_copied(frame, cpu, caches);
                // The copier now depends on what it read.
                explorer::observe(self.0.digest_of(frame).number());
            }
            Declaration::Written(frame) => {
                // The writer now depends on what it read.
                explorer::observe(self.0.digest_of(frame).number());
            }
        }
        drop(hidden);
        explorer::narrate(|| match declaration {
            Declaration::Given(frame) => format!("frame {:x} is given", frame >> 12),
            Declaration::Taken(frame) => format!("frame {:x} is free", frame >> 12),
            Declaration::Copied(frame) => format!("frame {:x} is copied", frame >> 12),
            Declaration::Written(frame) => format!("frame {:x} is written out", frame >> 12),
        });
    }

    fn picture(&self) -> String {
        let hidden = self.0.hidden();
        let all: Vec<_> = hidden.caches.iter().map(Caches::describe).collect();
        all.join("  ")
    }
}
