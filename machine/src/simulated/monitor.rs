//! A program that watches the pages of another one, as far as `memory` needs one: who waits for it, and what it asks for.
//!
//! Each CPU has one word: the page that its program waits for, or 0. Announcing, answering and waiting are accesses of CPUs like any other, so what
//! comes between them is explored.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Weak};

use explorer::AtomicU64;
use memory::{
    AddressSpace, Event, Monitor, Origin, PageRange, Waited, Watch, WatchedFault, Wishes, round_down,
};

use super::machine::SimulatedEnvironment;
use super::operation::Promise;

/// CPUs of the largest scenario.
const CPUS: usize = 4;

/// Who waits for the monitor.
pub struct SimulatedMonitor {
    /// Whether each fault is a signal, instead of being told. Set before a run.
    gives_signals: AtomicBool,
    waiting: [AtomicU64; CPUS],
}

impl SimulatedMonitor {
    pub(super) fn new() -> Arc<Self> {
        let waiting = [const { AtomicU64::new(0) }; CPUS];
        Arc::new(Self { gives_signals: AtomicBool::new(false), waiting })
    }

    fn word(&self, cpu: u64) -> &AtomicU64 {
        &self.waiting[cpu as usize]
    }
}

impl Monitor<SimulatedEnvironment> for SimulatedMonitor {
    fn wishes(&self) -> Wishes {
        if self.gives_signals.load(Relaxed) { Wishes::SIGNAL } else { Wishes::empty() }
    }

    fn announce(&self, fault: WatchedFault) -> u64 {
        let cpu = explorer::current_cpu() as u64;
        self.word(cpu).swap(round_down(fault.address), AcqRel);
        explorer::narrate(|| format!("tells of a fault at {:#x}", fault.address));
        cpu
    }

    fn withdraw(&self, ticket: u64) {
        self.word(ticket).swap(0, AcqRel);
    }

    fn wait(&self, ticket: u64, _origin: Origin) -> Waited {
        while self.word(ticket).load(Acquire) != 0 {
            explorer::wait();
        }
        Waited::Woken
    }

    fn wake(&self, range: PageRange) {
        for word in &self.waiting {
            let page = word.load(Acquire);
            if page != 0 && range.contains(page) {
                word.swap(0, AcqRel);
            }
        }
    }

    fn change_begins(&self) {}

    fn is_changing(&self) -> bool {
        false
    }

    fn tell(&self, _event: Event<Self>) {}

    fn for_child(&self, _child: &Weak<AddressSpace<SimulatedEnvironment>>) -> Arc<Self> {
        Self::new()
    }
}

impl SimulatedEnvironment {
    /// Stores to guarded pages are refused, and not waited for.
    pub(super) fn refuse_guarded_stores(&self) {
        self.0.monitor.gives_signals.store(true, Relaxed);
    }

    /// `UFFDIO_REGISTER`.
    pub(super) fn watch(&self, range: PageRange, watch: Watch) {
        let space = self.loaded();
        let watched = self.call("UFFDIO_REGISTER", &space, range, Promise::Agreement, || {
            space.watch(range, &self.0.monitor, watch)
        });
        watched.expect("a scenario watches what can be watched");
    }

    /// `UFFDIO_UNREGISTER`.
    pub(super) fn unwatch(&self, range: PageRange) {
        let space = self.loaded();
        let unwatch = || space.unwatch(range);
        let unwatched = self.call("UFFDIO_UNREGISTER", &space, range, Promise::Agreement, unwatch);
        unwatched.expect("a scenario has mapped what it watches");
    }

    /// `UFFDIO_WRITEPROTECT`.
    pub(super) fn guard(&self, range: PageRange) {
        let space = self.loaded();
        let guarded = self.call("UFFDIO_WRITEPROTECT", &space, range, Promise::Protection, || {
            space.guard(&*self.0.monitor, range, true)
        });
        guarded.expect("a scenario guards what it watches");
    }

    /// `UFFDIO_WRITEPROTECT` that takes the guard away, and wakes who waits.
    pub(super) fn unguard(&self, range: PageRange) {
        let space = self.loaded();
        let unguarded = self.call("UFFDIO_WRITEPROTECT", &space, range, Promise::Agreement, || {
            space.guard(&*self.0.monitor, range, false)
        });
        unguarded.expect("a scenario guards what it watches");
        self.0.monitor.wake(range);
    }

    /// `UFFDIO_COPY` of pages that begin with a number; says whether there was anything to fill in.
    pub(super) fn fill(&self, range: PageRange, number: u64) -> bool {
        let space = self.loaded();
        let filled = self.call("UFFDIO_COPY", &space, range, Promise::Agreement, || {
            space.fill_with_copies(&*self.0.monitor, range, false, |_, frame| {
                frame.clear(0, memory::PAGE_SIZE as usize);
                frame.write(0, &number.to_ne_bytes());
                // Reading takes time.
                explorer::step(explorer::Step::Machine { number: range.start(), stores: false });
                Ok(())
            })
        });
        self.0.monitor.wake(range);
        filled.is_ok()
    }
}
