//! A machine whose CPUs are host threads, for races that one thread playing all CPUs cannot have.
//!
//! A CPU takes interrupts where it polls: between two accesses of its program, and in every loop in which it waits for a lock
//! or for other CPUs. Its translation cache keeps everything until it is told to drop it.

#![allow(
    unsafe_code,
    reason = "the edge of a simulated machine: its RAM, its locks, and the promises of `Platform`"
)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use coherence::{Coherence, CpuId, CpuSet, Mode, Platform, Switches, Tag};
use lock_api::{RawMutex, RawRwLock};
use memory::{Access, AddressSpace, Environment, Fault, Frames, PAGE_SIZE, Swap, Waiting};

/// How many CPUs there are.
pub const CPUS: usize = 4;
const RAM: u64 = 64 << 20;
const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const ACCESSED: u64 = 32;
const DIRTY: u64 = 64;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// An address space on this machine.
pub type ThreadSpace = AddressSpace<ThreadEnvironment>;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTS_OFF: Cell<bool> = const { Cell::new(false) };
    static TRANSLATIONS: RefCell<HashMap<u64, u64>> = RefCell::new(HashMap::new());
    static MACHINE: RefCell<Option<(Arc<Machine>, Arc<ThreadSpace>)>> = const { RefCell::new(None) };
}

/// Takes an interrupt, if one has come.
pub fn poll() {
    if INTERRUPTS_OFF.get() {
        return;
    }
    MACHINE.with_borrow(|machine| {
        if let Some((machine, space)) = machine
            && machine.pending[CPU.get()].swap(false, AcqRel)
        {
            INTERRUPTS_OFF.set(true);
            machine.coherence.handle_requests(Some(space.space()), Mode::User);
            INTERRUPTS_OFF.set(false);
        }
    });
}

fn wait_a_turn() {
    poll();
    std::thread::yield_now();
}

/// A lock that takes interrupts while it waits.
#[derive(Debug)]
pub struct SpinLock(AtomicBool);

// SAFETY: taken only by the one exchange that finds it free.
unsafe impl RawMutex for SpinLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's initial value")]
    const INIT: Self = SpinLock(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        while !self.try_lock() {
            wait_a_turn();
        }
    }

    fn try_lock(&self) -> bool {
        self.0.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        self.0.store(false, Release);
    }
}

/// Readers, or `EXCLUSIVE`.
#[derive(Debug)]
pub struct AreaLock(AtomicUsize);
const EXCLUSIVE: usize = usize::MAX;

// SAFETY: exclusive only by the one exchange that finds it free, shared only when it is not exclusive.
unsafe impl RawRwLock for AreaLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's initial value")]
    const INIT: Self = AreaLock(AtomicUsize::new(0));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock_shared(&self) {
        while !self.try_lock_shared() {
            wait_a_turn();
        }
    }

    fn try_lock_shared(&self) -> bool {
        let more = |count: usize| if count == EXCLUSIVE { None } else { Some(count + 1) };
        self.0.fetch_update(Acquire, Relaxed, more).is_ok()
    }

    unsafe fn unlock_shared(&self) {
        self.0.fetch_sub(1, Release);
    }

    fn lock_exclusive(&self) {
        while !self.try_lock_exclusive() {
            wait_a_turn();
        }
    }

    fn try_lock_exclusive(&self) -> bool {
        self.0.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed).is_ok()
    }

    unsafe fn unlock_exclusive(&self) {
        self.0.store(0, Release);
    }
}

/// The CPUs, as far as others can reach them: an interrupt is a flag that its CPU polls.
#[derive(Debug)]
pub struct ThreadPlatform {
    pending: Arc<[AtomicBool; CPUS]>,
}

// SAFETY: a pending flag is seen by its CPU's next poll, and every waiting loop polls; roots are loaded by `enter` and
// `leave` only.
unsafe impl Platform for ThreadPlatform {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(CPU.get()).unwrap()
    }

    fn interrupt(&self, targets: &CpuSet) {
        targets.iter().for_each(|target| self.pending[target.index()].store(true, Release));
    }

    fn interrupts_enabled(&self) -> bool {
        !INTERRUPTS_OFF.get()
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let was_off = INTERRUPTS_OFF.replace(true);
        let result = work();
        INTERRUPTS_OFF.set(was_off);
        result
    }

    fn invalidate_page(&self, address: u64) {
        TRANSLATIONS.with_borrow_mut(|cache| cache.remove(&(address & !(PAGE_SIZE - 1))));
    }

    fn invalidate_all(&self) {
        TRANSLATIONS.with_borrow_mut(HashMap::clear);
    }

    fn load_root(&self, _root: u64, _tag: Tag, _keep: bool) {
        self.invalidate_all();
    }

    fn load_kernel_root(&self) {
        self.invalidate_all();
    }

    fn relax(&self) {
        wait_a_turn();
    }
}

/// The machine: its RAM and the library under test.
pub struct Machine {
    coherence: Coherence<ThreadPlatform>,
    /// Its physical memory.
    pub frames: Frames<SpinLock>,
    /// Where private pages go from it.
    pub swap: Swap<ThreadEnvironment>,
    waiting: Waiting<ThreadEnvironment>,
    pending: Arc<[AtomicBool; CPUS]>,
    /// Touched only through `word` and by the library.
    _ram: Vec<u64>,
    base: usize,
}

/// The machine as `memory` sees it, and its controls.
#[derive(Clone)]
pub struct ThreadEnvironment(pub Arc<Machine>);

impl Environment for ThreadEnvironment {
    type Platform = ThreadPlatform;
    type AreaLock = AreaLock;
    type TableLock = SpinLock;
    type Monitor = memory::Unmonitored;

    fn coherence(&self) -> &Coherence<ThreadPlatform> {
        &self.0.coherence
    }

    fn frames(&self) -> &Frames<SpinLock> {
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
        CpuId::new(CPU.get()).unwrap()
    }
}

impl ThreadEnvironment {
    /// A machine with all mechanisms on.
    #[expect(clippy::new_without_default, reason = "a machine is made on purpose")]
    pub fn new() -> Self {
        let pending = Arc::new([const { AtomicBool::new(false) }; CPUS]);
        let platform = ThreadPlatform { pending: pending.clone() };
        let mut ram = vec![0u64; (RAM + PAGE_SIZE) as usize / 8];
        let base = (ram.as_mut_ptr() as usize).next_multiple_of(PAGE_SIZE as usize);
        let machine = Machine {
            coherence: Coherence::new(platform, Switches::DEFAULT),
            frames: Frames::empty(),
            swap: Swap::new(),
            waiting: Waiting::new(),
            pending,
            _ram: ram,
            base,
        };
        // SAFETY: `ram` has a page more than RAM bytes from `base` on, and stays in the machine, untouched otherwise.
        unsafe { machine.frames.initialize(base as *mut u8, &[PAGE_SIZE..RAM / 2, RAM / 2..RAM]) };
        Self(Arc::new(machine))
    }

    /// A word of physical memory.
    pub fn word(&self, physical: u64) -> &AtomicU64 {
        assert!(physical < RAM && physical.is_multiple_of(8));
        // SAFETY: aligned and inside `ram`, which lives as long as the machine; shared only as atomics or by the library.
        unsafe { &*((self.0.base + physical as usize) as *const AtomicU64) }
    }

    /// This thread becomes a CPU that runs in the space.
    pub fn enter(&self, cpu: usize, space: &Arc<ThreadSpace>) {
        CPU.set(cpu);
        self.0.coherence.platform().without_interrupts(|| space.activate(None));
        MACHINE.set(Some((self.0.clone(), space.clone())));
    }

    /// This CPU leaves the space, and goes on answering until all have left.
    pub fn leave(&self, space: &ThreadSpace, left: &AtomicUsize) {
        self.0.coherence.platform().without_interrupts(|| self.0.coherence.leave(space.space()));
        left.fetch_add(1, SeqCst);
        while left.load(SeqCst) < CPUS {
            wait_a_turn();
        }
        MACHINE.set(None);
    }

    /// Where an access of this CPU's program arrives, through its translation cache.
    ///
    /// # Errors
    /// The fault that the address space could not resolve.
    pub fn access(&self, space: &ThreadSpace, address: u64, access: Access) -> Result<&AtomicU64, Fault> {
        let page = address & !(PAGE_SIZE - 1);
        loop {
            poll();
            let cached = TRANSLATIONS.with_borrow(|cache| cache.get(&page).copied());
            let entry = match cached {
                Some(entry) if !access.write || entry & DIRTY != 0 => Some(entry),
                _ => self.walk(space, page, access),
            };
            if let Some(entry) = entry
                && (!access.write || entry & WRITABLE != 0)
            {
                return Ok(self.word((entry & FRAME) + address % PAGE_SIZE));
            }
            self.0.coherence.platform().invalidate_page(page);
            space.handle_fault(address, access, entry.is_some())?;
        }
    }

    /// Walks the tables, sets accessed and dirty as hardware does, and caches what it found, if it allows the access.
    fn walk(&self, space: &ThreadSpace, page: u64, access: Access) -> Option<u64> {
        let leaf = (1..=3).rev().try_fold(space.space().root(), |table, level| {
            let entry = self.word(table + (page >> (12 + 9 * level) & 511) * 8).load(Acquire);
            (entry & PRESENT != 0).then_some(entry & FRAME)
        })?;
        let word = self.word(leaf + (page >> 12 & 511) * 8);
        let mut found = word.load(Acquire);
        loop {
            if found & PRESENT == 0 {
                return None;
            }
            if access.write && found & WRITABLE == 0 {
                return Some(found);
            }
            let used = if access.write { ACCESSED | DIRTY } else { ACCESSED };
            match word.compare_exchange(found, found | used, AcqRel, Acquire) {
                Ok(_) => {
                    TRANSLATIONS.with_borrow_mut(|cache| cache.insert(page, found | used));
                    return Some(found | used);
                }
                Err(now) => found = now,
            }
        }
    }
}
