//! A machine for tests: physical memory, and CPUs with translation caches that keep all they may.
//!
//! One host thread plays every CPU in turn, so an interrupt is taken the moment it is sent. What makes this machine a
//! hard judge are its caches: each CPU keeps every translation and every upper level it ever walked, until it is told
//! to drop them. It walks the tables by itself, from the root in memory, and knows nothing of the library's types.
//! After each operation [`Machine::check_caches`] compares all that is cached with what the tables say now.

#![allow(unsafe_code, reason = "the edge of a simulated machine: its RAM, and the promises of `Platform`")]

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use coherence::{Coherence, CpuId, CpuSet, Mode, Platform, Switches, Tag};
use lock_api::RawMutex;
use memory::{Access, AddressSpace, Environment, Fault, FrameNumber, Frames, PAGE_SIZE};

/// How many CPUs there are.
pub const CPUS: usize = 4;
/// Where simulated RAM ends, if nothing else is said. The first page is left out, as on a real machine.
const RAM: u64 = 24 << 20;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const ACCESSED: u64 = 32;
const DIRTY: u64 = 64;
const LARGE: u64 = 128;
/// Bytes in a large page.
const LARGE_PAGE: u64 = 2 << 20;
const NO_EXECUTE: u64 = 1 << 63;
const FRAME: u64 = 0x000f_ffff_ffff_f000;
const KERNEL_ROOT: u64 = 0;

/// An address space on this machine.
pub type TurnSpace = AddressSpace<TurnEnvironment>;

/// What one CPU has cached.
#[derive(Default)]
struct Cpu {
    root: u64,
    /// It runs no user code, whatever the sets say (without the mechanism `lazy` it stays in `active`).
    is_lazy: bool,
    /// By page address, or for a large page by [`large_key`]: the entry as it was when it was walked.
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
        cpu.translations.remove(&large_key(address));
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
    loaded: Mutex<Vec<Option<Arc<TurnSpace>>>>,
    ram: *mut u8,
    ram_bytes: u64,
}

// SAFETY: `ram` is only handed to `Frames`, which is made for sharing.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

/// What the large page around an address is cached by: no small page's address is odd.
fn large_key(address: u64) -> u64 {
    address & !(LARGE_PAGE - 1) | 1
}

/// What a large page's entry says of the small page at an address.
fn piece(entry: u64, address: u64) -> u64 {
    (entry & !LARGE) + (address & (LARGE_PAGE - 1) & !(PAGE_SIZE - 1))
}

fn ram_layout(bytes: u64) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes as usize, PAGE_SIZE as usize).unwrap()
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `TurnEnvironment::with_ram`, and `frames` goes with us.
        unsafe { std::alloc::dealloc(self.ram, ram_layout(self.ram_bytes)) };
    }
}

std::thread_local! {
    /// Spinning locks that are held.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// A spinning lock of this machine: it is never waited for, but it is counted.
#[allow(missing_debug_implementations, reason = "the lock inside has none")]
pub struct TurnLock(parking_lot::RawMutex);

// SAFETY: all calls go through to a lock that keeps the trait's promises.
unsafe impl RawMutex for TurnLock {
    const INIT: Self = Self(parking_lot::RawMutex::INIT);
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        self.0.lock();
        HELD.set(HELD.get() + 1);
    }

    fn try_lock(&self) -> bool {
        let locked = self.0.try_lock();
        HELD.set(HELD.get() + usize::from(locked));
        locked
    }

    unsafe fn unlock(&self) {
        HELD.set(HELD.get() - 1);
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock() }
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

    fn fill_kernel_half(&self, upper_half: &[AtomicU64]) {
        assert_eq!(upper_half.len(), 256);
        upper_half[255].store(PRESENT, Relaxed);
    }

    fn current_cpu(&self) -> CpuId {
        self.0.coherence.platform().current_cpu()
    }

    fn yield_if_needed(&self) {
        assert_eq!(
            HELD.get(),
            0,
            "others were let run with a spinning lock held: who runs may wait for it for ever"
        );
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
            loaded: Mutex::new(vec![None; CPUS]),
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
            self.0.coherence.activate(leaving.as_ref().map(|space| space.space()), space.space());
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

    fn word(&self, table: u64, index: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.frames.read(FrameNumber::containing(table).unwrap(), index as usize * 8, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// The table of a level that maps an address, as the tables in memory say.
    fn walk_to(&self, root: u64, address: u64, lowest: u64) -> Option<u64> {
        (lowest + 1..=3).rev().try_fold(root, |table, level| {
            let entry = self.word(table, address >> (12 + 9 * level) & 511);
            (entry & (PRESENT | LARGE) == PRESENT).then_some(entry & FRAME)
        })
    }

    /// The leaf table of an address.
    fn walk_to_leaf(&self, root: u64, address: u64) -> Option<u64> {
        self.walk_to(root, address, 0)
    }

    /// The large page's entry around an address, and where it lies, if there is one.
    fn walk_to_large(&self, root: u64, address: u64) -> Option<(u64, u64, u64)> {
        let (table, index) = (self.walk_to(root, address, 1)?, address >> 21 & 511);
        let entry = self.word(table, index);
        (entry & (PRESENT | LARGE) == PRESENT | LARGE).then_some((table, index, entry))
    }

    /// An access by user code on this CPU: the physical address it reaches, through this CPU's caches, taking faults
    /// as they come.
    ///
    /// # Errors
    /// The fault that the address space could not resolve.
    ///
    /// # Panics
    /// If the access faults again and again.
    pub fn access(&self, space: &Arc<TurnSpace>, address: u64, access: Access) -> Result<u64, Fault> {
        for _ in 0..8 {
            match self.try_access(address, access) {
                Ok(physical) => return Ok(physical),
                Err(present) => space.handle_fault(address, access, present)?,
            }
        }
        panic!("the access to {address:#x} faults for ever");
    }

    /// One attempt. `Err` is the fault's "present" bit.
    fn try_access(&self, address: u64, access: Access) -> Result<u64, bool> {
        let page = address & !(PAGE_SIZE - 1);
        let permits = |entry: u64| {
            entry & (PRESENT | USER) == PRESENT | USER
                && (!access.write || entry & WRITABLE != 0)
                && (!access.execute || entry & NO_EXECUTE == 0)
        };
        let number = self.current_cpu().index();
        let cached = {
            let cpus = self.0.coherence.platform().cpus.lock().unwrap();
            let large = cpus[number].translations.get(&large_key(page)).map(|entry| piece(*entry, page));
            cpus[number].translations.get(&page).copied().or(large)
        };
        if let Some(entry) = cached {
            // A store through a clean entry must set the dirty bit in memory, and so walks.
            if permits(entry) && (!access.write || entry & DIRTY != 0) {
                return Ok((entry & FRAME) + address % PAGE_SIZE);
            }
            if !permits(entry) {
                self.0.coherence.platform().invalidate_page(page);
                return Err(true);
            }
        }
        let entry = self.fill(page, access.write);
        if entry.is_some_and(permits) {
            return Ok((entry.unwrap_or(0) & FRAME) + address % PAGE_SIZE);
        }
        // A fault drops the translation of its address, and the upper levels.
        self.0.coherence.platform().invalidate_page(page);
        Err(entry.is_some())
    }

    /// Walks and caches, as hardware may at any time; the entry, if it is present.
    pub fn fill(&self, page: u64, write: bool) -> Option<u64> {
        let number = self.current_cpu().index();
        let (root, upper) = {
            let cpus = self.0.coherence.platform().cpus.lock().unwrap();
            (cpus[number].root, cpus[number].upper_levels.get(&(page >> 21)).copied())
        };
        if root == KERNEL_ROOT {
            return None;
        }
        if upper.is_none()
            && let Some((table, index, mut entry)) = self.walk_to_large(root, page)
        {
            entry |= if write && entry & WRITABLE != 0 { ACCESSED | DIRTY } else { ACCESSED };
            let frame = FrameNumber::containing(table).unwrap();
            self.0.frames.write(frame, index as usize * 8, &entry.to_ne_bytes());
            let mut cpus = self.0.coherence.platform().cpus.lock().unwrap();
            cpus[number].translations.insert(large_key(page), entry);
            return Some(piece(entry, page));
        }
        let leaf = upper.or_else(|| self.walk_to_leaf(root, page))?;
        let index = page >> 12 & 511;
        let mut entry = self.word(leaf, index);
        let mut cpus = self.0.coherence.platform().cpus.lock().unwrap();
        cpus[number].upper_levels.insert(page >> 21, leaf);
        if entry & PRESENT == 0 {
            return None;
        }
        entry |= if write && entry & WRITABLE != 0 { ACCESSED | DIRTY } else { ACCESSED };
        let frame = FrameNumber::containing(leaf).unwrap();
        self.0.frames.write(frame, index as usize * 8, &entry.to_ne_bytes());
        cpus[number].translations.insert(page, entry);
        Some(entry)
    }

    /// Whether this CPU has a translation of a small page cached.
    pub fn has_cached(&self, page: u64) -> bool {
        let number = self.current_cpu().index();
        self.0.coherence.platform().cpus.lock().unwrap()[number].translations.contains_key(&page)
    }

    /// Asserts that no CPU has anything cached which the tables do not allow any more: translations of spaces in use,
    /// and upper levels also of spaces that are only borrowed.
    pub fn check_caches(&self) {
        let cpus = self.0.coherence.platform().cpus.lock().unwrap();
        let loaded = self.0.loaded.lock().unwrap();
        for (number, cpu) in cpus.iter().enumerate().filter(|(_, cpu)| cpu.root != KERNEL_ROOT) {
            assert_eq!(loaded[number].as_ref().map(|space| space.space().root()), Some(cpu.root));
            for (region, leaf) in &cpu.upper_levels {
                let now = self.walk_to_leaf(cpu.root, region << 21);
                assert_eq!(
                    now,
                    Some(*leaf),
                    "CPU {number} walks a table of {:#x} that was freed",
                    region << 21
                );
            }
            if cpu.is_lazy {
                continue;
            }
            for (page, cached) in &cpu.translations {
                // Two sizes of one address never contradict each other, but must not be there together either.
                let now = if page & 1 == 1 {
                    self.walk_to_large(cpu.root, *page).map_or(0, |(_, _, entry)| entry)
                } else {
                    let leaf = self.walk_to_leaf(cpu.root, *page);
                    leaf.map_or(0, |leaf| self.word(leaf, page >> 12 & 511))
                };
                let is_allowed = now & PRESENT != 0
                    && now & FRAME == cached & FRAME
                    && (cached & WRITABLE == 0 || now & WRITABLE != 0)
                    && (cached & NO_EXECUTE != 0 || now & NO_EXECUTE == 0);
                assert!(is_allowed, "CPU {number} holds {cached:#x} for {page:#x}, which now has {now:#x}");
            }
        }
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
