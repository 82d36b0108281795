//! A machine for tests: physical memory, and CPUs with translation caches that keep all they may.
//!
//! One host thread plays every CPU in turn, so an interrupt is taken the moment it is sent. What makes this machine a
//! hard judge are its caches: each CPU keeps every translation and every upper level it ever walked, until it is told
//! to drop them. It walks the tables by itself, from the root in memory, and knows nothing of the library's types.
//! After each operation [`TurnEnvironment::check_caches`] compares all that is cached with what the tables say now.

#![allow(unsafe_code, reason = "the edge of a simulated machine: its RAM, and the promises of `Platform`")]

mod disk;
mod lock;
mod walk;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use coherence::{Coherence, CpuId, CpuSet, Mode, Platform, Switches, Tag};
use memory::{Access, AddressSpace, Environment, Fault, FrameNumber, Frames, PAGE_SIZE, Swap, Waiting};

pub use disk::TurnDisk;
pub use lock::TurnLock;

/// How many CPUs there are.
pub const CPUS: usize = 4;
/// Where simulated RAM ends, if nothing else is said. The first page is left out, as on a real machine.
const RAM: u64 = 24 << 20;

const PRESENT: u64 = 1;
const KERNEL_ROOT: u64 = 0;

/// An address space on this machine.
pub type TurnSpace = AddressSpace<TurnEnvironment>;

/// What one CPU has cached.
#[derive(Default)]
struct Cpu {
    root: u64,
    /// It runs no user code, whatever the sets say (without the mechanism `lazy` it stays in `active`).
    is_lazy: bool,
    /// By page address, or for a large page by [`walk::large_key`]: the entry as it was when it was walked.
    translations: HashMap<u64, u64>,
    /// By 2 MiB region: the address of its leaf table.
    upper_levels: HashMap<u64, u64>,
}

/// The CPUs: which one is played now, and what each has cached.
pub struct TurnPlatform {
    cpus: Mutex<Vec<Cpu>>,
    current: AtomicUsize,
    interrupts_off: AtomicBool,
    interrupts: AtomicU64,
    machine: Mutex<Weak<Machine>>,
}

// SAFETY: one host thread plays all CPUs; `interrupt` runs each target's handler before it returns; roots are loaded
// only by `activate` and `leave`, called by `Machine` below, which keeps what a CPU has loaded alive.
unsafe impl Platform for TurnPlatform {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(self.current.load(Relaxed)).unwrap()
    }

    fn interrupt(&self, targets: &CpuSet) {
        let machine = self.machine.lock().unwrap().upgrade().unwrap();
        let sender = self.current.load(Relaxed);
        for target in targets {
            self.interrupts.fetch_add(1, Relaxed);
            self.current.store(target.index(), Relaxed);
            let was_off = self.interrupts_off.swap(true, Relaxed);
            let loaded = machine.loaded.lock().unwrap()[target.index()].clone();
            machine.coherence.handle_requests(loaded.as_ref().map(|space| space.space()), Mode::User);
            self.interrupts_off.store(was_off, Relaxed);
        }
        self.current.store(sender, Relaxed);
    }

    fn interrupts_enabled(&self) -> bool {
        !self.interrupts_off.load(Relaxed)
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let was_off = self.interrupts_off.swap(true, Relaxed);
        let result = work();
        self.interrupts_off.store(was_off, Relaxed);
        result
    }

    fn invalidate_page(&self, address: u64) {
        let mut cpus = self.cpus.lock().unwrap();
        let cpu = &mut cpus[self.current.load(Relaxed)];
        cpu.translations.remove(&(address & !(PAGE_SIZE - 1)));
        // By any address in it.
        cpu.translations.remove(&walk::large_key(address));
        cpu.upper_levels.clear();
    }

    fn invalidate_all(&self) {
        let mut cpus = self.cpus.lock().unwrap();
        let cpu = &mut cpus[self.current.load(Relaxed)];
        cpu.translations.clear();
        cpu.upper_levels.clear();
    }

    fn load_root(&self, root: u64, _tag: Tag, keep: bool) {
        assert!(!keep, "there is one tag");
        self.invalidate_all();
        self.cpus.lock().unwrap()[self.current.load(Relaxed)].root = root;
    }

    fn load_kernel_root(&self) {
        self.invalidate_all();
        self.cpus.lock().unwrap()[self.current.load(Relaxed)].root = KERNEL_ROOT;
    }

    fn relax(&self) {
        std::hint::spin_loop();
    }
}

/// The machine: its RAM, its CPUs, and the library under test.
pub struct Machine {
    /// The coherence under test.
    pub coherence: Coherence<TurnPlatform>,
    /// Its physical memory.
    pub frames: Frames<TurnLock>,
    /// Where private pages go from it.
    pub swap: Swap<TurnEnvironment>,
    waiting: Waiting<TurnEnvironment>,
    loaded: Mutex<Vec<Option<Arc<TurnSpace>>>>,
    /// What another thread does when this one lets it run.
    other: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    ram: *mut u8,
    ram_bytes: u64,
}

// SAFETY: `ram` is only handed to `Frames`, which is made for sharing.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

fn ram_layout(bytes: u64) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes as usize, PAGE_SIZE as usize).unwrap()
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `TurnEnvironment::with_ram`, and `frames` goes with us.
        unsafe { std::alloc::dealloc(self.ram, ram_layout(self.ram_bytes)) };
    }
}

/// The machine as `memory` sees it, and its controls.
#[derive(Clone)]
pub struct TurnEnvironment(pub Arc<Machine>);

impl Environment for TurnEnvironment {
    type Platform = TurnPlatform;
    type AreaLock = parking_lot::RawRwLock;
    type TableLock = TurnLock;
    type Monitor = memory::Unmonitored;

    fn coherence(&self) -> &Coherence<TurnPlatform> {
        &self.0.coherence
    }

    fn frames(&self) -> &Frames<TurnLock> {
        &self.0.frames
    }

    fn swap(&self) -> &Swap<Self> {
        &self.0.swap
    }

    fn waiting(&self) -> &Waiting<Self> {
        &self.0.waiting
    }

    fn fill_kernel_half(&self, upper_half: &[AtomicU64]) {
        assert_eq!(upper_half.len(), 256);
        upper_half[255].store(PRESENT, Relaxed);
    }

    fn current_cpu(&self) -> CpuId {
        self.0.coherence.platform().current_cpu()
    }

    fn yield_if_needed(&self) {
        assert_eq!(
            lock::held(),
            0,
            "others were let run with a spinning lock held: who runs may wait for it for ever"
        );
        let other = self.0.other.lock().unwrap().take();
        if let Some(other) = other {
            other();
        }
    }
}

impl TurnEnvironment {
    /// A machine with these mechanisms; CPU 0 is being played, and no CPU has a space loaded.
    ///
    /// # Panics
    /// If the host has no memory for its RAM.
    pub fn new(switches: Switches) -> Self {
        Self::with_ram(switches, RAM)
    }

    /// As [`new`](Self::new), with RAM of that size.
    ///
    /// # Panics
    /// As `new`.
    pub fn with_ram(switches: Switches, ram_bytes: u64) -> Self {
        let platform = TurnPlatform {
            cpus: Mutex::new((0..CPUS).map(|_| Cpu::default()).collect()),
            current: AtomicUsize::new(0),
            interrupts_off: AtomicBool::new(false),
            interrupts: AtomicU64::new(0),
            machine: Mutex::new(Weak::new()),
        };
        // SAFETY: the layout has a size.
        let ram = unsafe { std::alloc::alloc_zeroed(ram_layout(ram_bytes)) };
        assert!(!ram.is_null());
        let machine = Arc::new(Machine {
            coherence: Coherence::new(platform, switches),
            frames: Frames::empty(),
            swap: Swap::new(),
            waiting: Waiting::new(),
            loaded: Mutex::new(vec![None; CPUS]),
            other: Mutex::new(None),
            ram,
            ram_bytes,
        });
        // SAFETY: `ram` has so many bytes, page-aligned, used by nothing else, and lives as long as `frames`.
        unsafe { machine.frames.initialize(ram, &[PAGE_SIZE..1 << 20, 1 << 20..ram_bytes]) };
        *machine.coherence.platform().machine.lock().unwrap() = Arc::downgrade(&machine);
        Self(machine)
    }

    /// An empty address space.
    ///
    /// # Panics
    /// If its RAM is full.
    pub fn space(&self) -> Arc<TurnSpace> {
        AddressSpace::new(self).unwrap()
    }

    /// Has another CPU do this as soon as this one has let go of a spinning lock and holds none any more, again and again until it says that it has done what it
    /// wanted.
    pub fn at_unlock(&self, other: impl FnMut() -> bool + 'static) {
        lock::set_next(other);
    }

    /// Has another thread do this as soon as an operation lets others run.
    pub fn meanwhile(&self, other: impl FnOnce() + Send + 'static) {
        *self.0.other.lock().unwrap() = Some(Box::new(other));
    }

    /// Goes on as this CPU.
    pub fn be(&self, cpu: usize) {
        self.0.coherence.platform().current.store(cpu, Relaxed);
    }

    /// How many interrupts have been sent so far.
    pub fn interrupts(&self) -> u64 {
        self.0.coherence.platform().interrupts.load(Relaxed)
    }

    /// How many interrupts `work` causes.
    pub fn interrupts_of(&self, work: impl FnOnce()) -> u64 {
        let before = self.interrupts();
        work();
        self.interrupts() - before
    }

    /// This CPU goes to run user code in the space.
    pub fn activate(&self, space: &Arc<TurnSpace>) {
        let cpu = self.current_cpu().index();
        let leaving = self.0.loaded.lock().unwrap()[cpu].clone();
        let platform = self.0.coherence.platform();
        platform.without_interrupts(|| {
            space.activate(leaving.as_ref().map(|space| space.space()));
        });
        self.0.loaded.lock().unwrap()[cpu] = Some(space.clone());
        platform.cpus.lock().unwrap()[cpu].is_lazy = false;
    }

    /// This CPU goes idle and borrows what it has loaded.
    pub fn go_lazy(&self) {
        let loaded = self.0.loaded.lock().unwrap()[self.current_cpu().index()].clone();
        if let Some(loaded) = loaded {
            let platform = self.0.coherence.platform();
            platform.without_interrupts(|| self.0.coherence.go_lazy(loaded.space()));
            platform.cpus.lock().unwrap()[self.current_cpu().index()].is_lazy = true;
        }
    }

    /// This CPU lets go of its space.
    pub fn leave(&self) {
        let loaded = self.0.loaded.lock().unwrap()[self.current_cpu().index()].take();
        if let Some(loaded) = loaded {
            let platform = self.0.coherence.platform();
            platform.without_interrupts(|| self.0.coherence.leave(loaded.space()));
        }
    }

    /// Every CPU lets go of its space, and CPU 0 goes on.
    pub fn leave_everywhere(&self) {
        for cpu in 0..CPUS {
            self.be(cpu);
            self.leave();
        }
        self.be(0);
    }

    /// The word at a physical address.
    pub fn load_u64(&self, physical: u64) -> u64 {
        let mut bytes = [0; 8];
        let frame = FrameNumber::containing(physical).unwrap();
        self.0.frames.read(frame, (physical % PAGE_SIZE) as usize, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// Stores a word at a physical address.
    pub fn store_u64(&self, physical: u64, value: u64) {
        let frame = FrameNumber::containing(physical).unwrap();
        self.0.frames.write(frame, (physical % PAGE_SIZE) as usize, &value.to_ne_bytes());
    }

    /// A load by user code on this CPU.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn load(&self, space: &Arc<TurnSpace>, address: u64) -> Result<u64, Fault> {
        self.access(space, address, Access::READ).map(|physical| self.load_u64(physical))
    }

    /// A store by user code on this CPU.
    ///
    /// # Errors
    /// As [`access`](Self::access).
    pub fn store(&self, space: &Arc<TurnSpace>, address: u64, value: u64) -> Result<(), Fault> {
        self.access(space, address, Access::WRITE).map(|physical| self.store_u64(physical, value))
    }

    /// How many frames are free.
    pub fn free_frames(&self) -> usize {
        self.0.frames.statistics().free
    }
}
