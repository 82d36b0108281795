//! A complete port: threads of the host are CPUs, with translation caches in software. `docs/guide/porting.md` walks through it.
//!
//! A CPU is whatever thread has its number in [`CPU`]. Interrupts are flags, which a CPU looks at when it passes a safe point.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard};

use coherence::{Cause, Coherence, CpuId, CpuSet, Flush, Mode, Platform, Space, Switches, Tag, Translation};

pub(crate) const CPUS: usize = 4;
pub(crate) const PAGES: u64 = 8;
pub(crate) const PAGE: u64 = 4096;
/// Bits of a page-table entry; the frame's number is above them.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const WRITABLE: u64 = 2;
const ACCESSED: u64 = 4;
const DIRTY: u64 = 8;
pub(crate) const FRAME: u32 = 4;

thread_local! {
    pub(crate) static CPU: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTS_OFF: Cell<bool> = const { Cell::new(false) };
    /// This CPU's translations: a copy of the entry for each page.
    static TLB: RefCell<HashMap<u64, u64>> = RefCell::default();
    /// What this CPU last activated, kept alive for it.
    static LOADED: RefCell<Option<Arc<Process>>> = const { RefCell::new(None) };
}
static PENDING: [AtomicBool; CPUS] = [const { AtomicBool::new(false) }; CPUS];
pub(crate) static MACHINE: Coherence<Threads> = Coherence::new(Threads, Switches::DEFAULT);

pub(crate) struct Threads;

// SAFETY: nothing is accessed through these translations but `OWNERS`, which is checked; and what the trait asks of the kernel holds:
// `switch` alone changes roots, with interrupts off; `LOADED` keeps spaces alive; nobody waits with interrupts off.
unsafe impl Platform for Threads {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(CPU.get()).expect("there are few CPUs")
    }
    fn interrupt(&self, targets: &CpuSet) {
        targets.iter().for_each(|target| PENDING[target.index()].store(true, Release));
    }
    fn interrupts_enabled(&self) -> bool {
        !INTERRUPTS_OFF.get()
    }
    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = INTERRUPTS_OFF.replace(true);
        let result = work();
        INTERRUPTS_OFF.set(before);
        result
    }
    fn invalidate_page(&self, address: u64) {
        TLB.with_borrow_mut(|tlb| tlb.remove(&(address / PAGE)));
    }
    fn invalidate_all(&self) {
        TLB.take();
    }
    fn load_root(&self, _root: u64, _tag: Tag, _keep: bool) {
        TLB.take();
    }
    fn load_kernel_root(&self) {
        TLB.take();
    }
    fn relax(&self) {
        safe_point(Mode::Kernel);
        std::thread::yield_now();
    }
}

/// Takes an interrupt, if one is pending: CPUs come by here often, and whenever they wait.
pub(crate) fn safe_point(mode: Mode) {
    if PENDING[CPU.get()].swap(false, Acquire) {
        let loaded = LOADED.with_borrow(Clone::clone);
        let loaded = loaded.as_ref().map(|process| &process.space);
        MACHINE.platform().without_interrupts(|| MACHINE.handle_requests(loaded, mode));
    }
}

pub(crate) struct Process {
    number: u64,
    pub(crate) space: Space,
    /// The lock is for operations; walkers read entries without it.
    lock: Mutex<()>,
    pub(crate) table: [AtomicU64; PAGES as usize],
}

impl Process {
    pub(crate) fn new(number: u64) -> Self {
        let table = [const { AtomicU64::new(0) }; PAGES as usize];
        Process { number, space: MACHINE.new_space(number), lock: Mutex::new(()), table }
    }

    /// Waits with interrupts on: who has the lock may wait for this CPU's answer.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        loop {
            if let Ok(guard) = self.lock.try_lock() {
                return guard;
            }
            MACHINE.platform().relax();
        }
    }
}

/// Whose each frame is: 0 for nobody's, else a process and a page.
pub(crate) static OWNERS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// How often a frame was used by somebody whose it is not.
pub(crate) static STALE_USES: AtomicUsize = AtomicUsize::new(0);

/// The scheduler's switch, to a thread of a process or, with `None`, to nothing for good.
pub(crate) fn switch(next: Option<&Arc<Process>>) {
    let last = LOADED.with_borrow(Clone::clone);
    MACHINE.platform().without_interrupts(|| match (&last, next) {
        (last, Some(next)) => MACHINE.activate(last.as_ref().map(|last| &last.space), &next.space),
        (Some(last), None) => MACHINE.leave(&last.space),
        (None, None) => {}
    });
    LOADED.set(next.cloned());
}

/// User code stores to a page. Says whether it may.
pub(crate) fn store(process: &Process, page: u64) -> bool {
    let own = process.number * PAGES + page + 1;
    let needed = PRESENT | WRITABLE | DIRTY;
    loop {
        let cached = TLB.with_borrow(|tlb| tlb.get(&page).copied());
        if let Some(entry) = cached.filter(|entry| entry & needed == needed) {
            let is_stale = OWNERS[(entry >> FRAME) as usize].load(Relaxed) != own;
            STALE_USES.fetch_add(usize::from(is_stale), Relaxed);
            return true;
        }
        // The walker: sets both bits in the table, and only if the entry is still the same.
        let entry = process.table[page as usize].load(Acquire);
        let walked = entry | ACCESSED | DIRTY;
        if cached.is_some() || entry & WRITABLE == 0 {
            MACHINE.platform().invalidate_page(page * PAGE); // as hardware does before it faults
            if !fault(process, page, own) {
                return false;
            }
        } else if process.table[page as usize].compare_exchange(entry, walked, AcqRel, Relaxed).is_ok() {
            TLB.with_borrow_mut(|tlb| tlb.insert(page, walked));
        }
    }
}

/// The page fault's handler: a new frame if there is none. Says whether the store is to be tried again.
fn fault(process: &Process, page: u64, own: u64) -> bool {
    let _guard = process.lock();
    let entry = &process.table[page as usize];
    match entry.load(Acquire) {
        old if old & WRITABLE != 0 => MACHINE.spurious_fault(),
        old if old & PRESENT != 0 => return false,
        _ => {
            // A batch may have taken a page out here that some CPU still uses.
            MACHINE.settle(&process.space, Cause::Reclaim);
            let is_taken = |owner: &AtomicU64| owner.compare_exchange(0, own, AcqRel, Relaxed).is_ok();
            let frame = OWNERS.iter().position(is_taken).expect("there are frames enough") as u64;
            entry.store(frame << FRAME | PRESENT | WRITABLE, Release);
        }
    }
    true
}

/// As the policy of `coherence` sees an entry.
pub(crate) fn translation(entry: u64) -> Translation {
    let has = |bit| entry & bit != 0;
    Translation {
        present: has(PRESENT),
        frame: entry >> FRAME,
        writable: has(WRITABLE),
        user: true,
        accessed: has(ACCESSED),
        dirty: has(DIRTY),
        ..Translation::default()
    }
}

/// Changes entries, flushes what must be, and frees the frames that were taken away. This is `munmap` and `mprotect`.
pub(crate) fn change(process: &Process, pages: Range<u64>, cause: Cause, change: impl Fn(u64) -> u64) {
    let about = Flush::range(pages.start * PAGE, pages.end * PAGE, PAGE);
    let mut gather = MACHINE.gather(&process.space, cause, Vec::new()).about(about);
    let guard = process.lock();
    gather.settle();
    for page in pages {
        let entry = &process.table[page as usize];
        let old = entry.fetch_update(AcqRel, Acquire, |old| Some(change(old))).unwrap_or_else(|old| old);
        let new = translation(change(old));
        gather.change(page * PAGE, PAGE, &translation(old), &new);
        if old & PRESENT != 0 && !new.present {
            gather.list_mut().push(old >> FRAME);
        }
    }
    drop(guard);
    for frame in gather.finish().into_inner() {
        OWNERS[frame as usize].store(0, Release);
    }
}
