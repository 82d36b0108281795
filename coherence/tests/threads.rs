//! The protocol with threads of this computer as CPUs: its real memory, its real order.
//!
//! One CPU replaces the frames of a few pages and frees the old ones; the others use the pages through simulated caches, and
//! go lazy and come back. "Interrupts" are polled between the steps of a CPU, which is all that the protocol asks for.
#![cfg(not(any(loom, shuttle)))]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use coherence::{
    Cause, Coherence, CpuId, CpuSet, Flush, Mode, Platform, Row, Space, Switched, Switches, Tag,
};

const CPUS: usize = 4;
const PAGES: usize = 3;
const PAGE: u64 = 4096;
const REPLACEMENTS: usize = 3_000;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTS_OFF: Cell<bool> = const { Cell::new(false) };
    /// What this CPU has cached: frames by page.
    static CACHE: RefCell<HashMap<u64, usize>> = RefCell::default();
}

struct Machine {
    coherence: Coherence<Hardware>,
    space: Space,
    /// The page table: a frame for each page, and never the same again.
    entries: [AtomicUsize; PAGES],
    freed: Vec<AtomicBool>,
    over: AtomicBool,
    /// How often a freed frame was used.
    stale_uses: AtomicUsize,
}

#[derive(Default)]
struct Hardware {
    pending: [AtomicBool; CPUS],
}

// SAFETY: nothing is accessed through the simulated caches but flags that the test checks.
unsafe impl Platform for Hardware {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(CPU.get()).expect("there are few CPUs")
    }

    fn interrupt(&self, targets: &CpuSet) {
        targets.iter().for_each(|target| self.pending[target.index()].store(true, Release));
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
        CACHE.with_borrow_mut(|cache| cache.remove(&(address / PAGE)));
    }

    fn invalidate_all(&self) {
        CACHE.take();
    }

    fn load_root(&self, _: u64, _: Tag, _: bool) {
        CACHE.take();
    }

    fn load_kernel_root(&self) {
        CACHE.take();
    }

    fn relax(&self) {
        std::thread::yield_now();
    }
}

impl Machine {
    /// Takes an interrupt, if one is there. A CPU of this test has the space loaded, or nothing.
    fn window(&self, mode: Mode) {
        let hardware = self.coherence.platform();
        if hardware.pending[CPU.get()].swap(false, Acquire) {
            hardware.without_interrupts(|| self.coherence.handle_requests(Some(&self.space), mode));
        }
    }

    fn without_interrupts(&self, work: impl FnOnce(&Coherence<Hardware>)) {
        self.coherence.platform().without_interrupts(|| work(&self.coherence));
    }

    /// User code reads a page.
    fn touch(&self, page: usize) {
        let cached = CACHE.with_borrow(|cache| cache.get(&(page as u64)).copied());
        let frame = cached.unwrap_or_else(|| self.entries[page].load(Relaxed));
        CACHE.with_borrow_mut(|cache| cache.insert(page as u64, frame));
        if self.freed[frame].load(Relaxed) {
            self.stale_uses.fetch_add(1, Relaxed);
        }
    }

    /// A CPU that runs user code, with a break now and then.
    fn user(&self, cpu: usize) {
        CPU.set(cpu);
        let mut turn = cpu;
        while !self.over.load(Relaxed) {
            self.without_interrupts(|coherence| coherence.activate(Some(&self.space), &self.space));
            for _ in 0..20 {
                turn += 1;
                self.touch(turn % PAGES);
                self.window(Mode::User);
                if turn.is_multiple_of(16) {
                    std::thread::yield_now();
                }
            }
            self.without_interrupts(|coherence| coherence.go_lazy(&self.space));
            self.window(Mode::Idle);
            std::thread::yield_now();
        }
        self.without_interrupts(|coherence| coherence.leave(&self.space));
        self.window(Mode::Idle);
    }

    /// Lets the others run until they have come back from lazy a few times more.
    fn let_users_run(&self) {
        let came_back = || self.coherence.ledger().total(Row::Switched(Switched::CameBack));
        let enough = came_back() + 20;
        while came_back() < enough {
            std::thread::yield_now();
        }
    }

    /// The CPU that replaces frames. The others cannot end while it waits for one of them.
    fn replace_frames(&self) {
        self.let_users_run();
        for replacement in 0..REPLACEMENTS {
            let page = replacement % PAGES;
            let old = self.entries[page].swap(PAGES + replacement, Relaxed);
            let flush = Flush::page(page as u64 * PAGE, PAGE);
            self.coherence.flush(&self.space, flush, Cause::CopyOnWrite);
            self.freed[old].store(true, Relaxed);
            if replacement.is_multiple_of(8) {
                std::thread::yield_now();
            }
        }
        self.let_users_run();
        self.over.store(true, Relaxed);
    }
}

/// Runs the machine; returns how often a freed frame was used, how many requests there were and how many interrupts.
fn run(suppressed: Option<Cause>) -> (usize, u64, u64) {
    let coherence = Coherence::new(Hardware::default(), Switches::DEFAULT);
    coherence.suppress(suppressed);
    let space = coherence.new_space(1);
    let machine = Machine {
        coherence,
        space,
        entries: std::array::from_fn(AtomicUsize::new),
        freed: (0..PAGES + REPLACEMENTS).map(|_| AtomicBool::new(false)).collect(),
        over: AtomicBool::new(false),
        stale_uses: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let machine = &machine;
        (1..CPUS).for_each(|cpu| drop(scope.spawn(move || machine.user(cpu))));
        machine.replace_frames();
    });
    let ledger = machine.coherence.ledger();
    (machine.stale_uses.load(Relaxed), ledger.group("requested"), ledger.group("sent"))
}

#[test]
fn freed_frames_are_never_used() {
    let (stale_uses, requests, interrupts) = run(None);
    assert_eq!(stale_uses, 0);
    assert_eq!(requests, REPLACEMENTS as u64);
    assert!((1..=(CPUS as u64 - 1) * requests).contains(&interrupts), "{interrupts} interrupts");
}

/// The same without the flushes, to show that the test can fail.
#[test]
fn without_flushes_freed_frames_are_used() {
    let (stale_uses, requests, interrupts) = run(Some(Cause::CopyOnWrite));
    assert_eq!((requests, interrupts), (0, 0));
    assert!(stale_uses > 0);
}
