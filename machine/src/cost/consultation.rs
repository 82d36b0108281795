//! What the real `coherence` does for a change: asked, not re-stated.
//!
//! The model's CPUs are too many for `coherence`, and it has no time. So before a simulation each kind of change that its program makes is
//! made once for real, on four CPUs: one makes it, one runs user code of the same address space, one only borrows the space, one has
//! never heard of it. An interrupt is taken the moment it is sent. What comes out (how many requests, who is interrupted, what each CPU
//! invalidates) is what every CPU in the same position does in the model. A rule that changes in `coherence`, or a
//! mechanism that is switched off, so changes the prediction.

#![allow(
    unsafe_code,
    reason = "the promises of `Platform`; there are no translations here that anyone could use"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use coherence::{
    Cause, Coherence, CpuId, CpuSet, Crossings, Mode, Platform, Space, Switches, Tag, Translation,
};

use super::workload::{Change, Kind};

const INITIATOR: usize = 0;
const RUNNING: usize = 1;
const LAZY: usize = 2;
const CPUS: usize = 4;
const PAGE: u64 = 4096;

/// What a CPU invalidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    #[default]
    None,
    /// So many pages, one by one.
    Pages(u64),
    /// Everything.
    All,
}

/// One request and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// CPUs that run the space are interrupted.
    pub tells_running: bool,
    /// CPUs that borrow it are interrupted.
    pub tells_lazy: bool,
    /// A CPU that borrowed it has let go of it, and is not told again before it comes back.
    pub lazy_lets_go: bool,
    /// What the initiator invalidates.
    pub here: Work,
    /// What a CPU that runs the space invalidates.
    pub there: Work,
}

#[derive(Clone, Copy)]
enum Did {
    Request(CpuSet),
    Work(usize, Work),
    LetGo(usize),
}

#[derive(Default)]
struct Recorder {
    machine: OnceLock<Weak<Machine>>,
    current: AtomicUsize,
    interrupts_off: AtomicBool,
    log: Mutex<Vec<Did>>,
    crossings: Vec<Crossings>,
}

struct Machine {
    coherence: Coherence<Recorder>,
    /// What each CPU has loaded, by the kernel's own account.
    loaded: Mutex<Vec<Option<Arc<Space>>>>,
}

impl Recorder {
    fn note(&self, did: Did) {
        self.log.lock().unwrap().push(did);
    }

    fn here(&self) -> usize {
        self.current.load(Relaxed)
    }
}

// SAFETY: there are no translations; each handler has run when `interrupt` returns.
unsafe impl Platform for Recorder {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(self.here()).expect("the machine is small")
    }

    fn interrupt(&self, targets: &CpuSet) {
        self.note(Did::Request(*targets));
        let machine = self.machine.get().and_then(Weak::upgrade).expect("it is still there");
        for target in targets {
            machine.on(target.index(), |loaded| {
                machine.coherence.handle_requests(loaded.as_deref(), Mode::User);
            });
        }
    }

    fn interrupts_enabled(&self) -> bool {
        !self.interrupts_off.load(Relaxed)
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = self.interrupts_off.swap(true, Relaxed);
        let result = work();
        self.interrupts_off.store(before, Relaxed);
        result
    }

    fn invalidate_page(&self, _address: u64) {
        let mut log = self.log.lock().unwrap();
        match log.last_mut() {
            Some(Did::Work(cpu, Work::Pages(pages))) if *cpu == self.here() => *pages += 1,
            _ => log.push(Did::Work(self.here(), Work::Pages(1))),
        }
    }

    fn invalidate_all(&self) {
        self.note(Did::Work(self.here(), Work::All));
    }

    fn load_root(&self, _root: u64, _tag: Tag, _keep: bool) {}

    fn load_kernel_root(&self) {
        self.note(Did::LetGo(self.here()));
    }

    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        self.crossings.get(cpu.index())
    }

    fn relax(&self) {
        panic!("every interrupt has been handled when `interrupt` returns, so there is nothing to wait for");
    }
}

impl Machine {
    fn new(switches: Switches) -> Arc<Self> {
        let crossings = (0..CPUS).map(|_| Crossings::new()).collect();
        let machine = Arc::new(Machine {
            coherence: Coherence::new(Recorder { crossings, ..Recorder::default() }, switches),
            loaded: Mutex::new(vec![None; CPUS]),
        });
        machine.coherence.platform().machine.set(Arc::downgrade(&machine)).expect("it is new");
        machine
    }

    /// Runs something as that CPU with interrupts off.
    fn on(&self, cpu: usize, work: impl FnOnce(&Option<Arc<Space>>)) {
        let platform = self.coherence.platform();
        let loaded = self.loaded.lock().unwrap()[cpu].clone();
        let before = platform.current.swap(cpu, Relaxed);
        platform.without_interrupts(|| work(&loaded));
        platform.current.store(before, Relaxed);
    }

    fn activate(&self, cpu: usize, space: &Arc<Space>) {
        self.on(cpu, |loaded| self.coherence.activate(loaded.as_deref(), space));
        self.loaded.lock().unwrap()[cpu] = Some(space.clone());
    }

    /// Everybody in their positions, and nothing logged yet.
    fn prepare(&self) -> Arc<Space> {
        let space = Arc::new(self.coherence.new_space(PAGE));
        [INITIATOR, RUNNING, LAZY].into_iter().for_each(|cpu| self.activate(cpu, &space));
        self.on(RUNNING, |loaded| self.coherence.enter_user(loaded.as_deref()));
        self.on(LAZY, |_| self.coherence.go_lazy(&space));
        self.coherence.platform().log.lock().unwrap().clear();
        space
    }

    /// Everybody lets go of the space, which may then end.
    fn dismiss(&self) {
        for cpu in [INITIATOR, RUNNING, LAZY] {
            self.on(cpu, |loaded| loaded.iter().for_each(|space| self.coherence.leave(space)));
            self.loaded.lock().unwrap()[cpu] = None;
        }
    }

    /// What was logged, as requests; the last that is asked of a machine.
    fn requests(&self) -> Vec<Request> {
        let mut requests: Vec<Request> = Vec::new();
        let contains = |set: &CpuSet, cpu: usize| CpuId::new(cpu).is_some_and(|cpu| set.contains(cpu));
        let log = std::mem::take(&mut *self.coherence.platform().log.lock().unwrap());
        for did in &log {
            match (did, requests.last_mut()) {
                (Did::Request(targets), _) => requests.push(Request {
                    tells_running: contains(targets, RUNNING),
                    tells_lazy: contains(targets, LAZY),
                    ..Request::default()
                }),
                (Did::Work(INITIATOR, work), Some(request)) => request.here = *work,
                (Did::Work(RUNNING, work), Some(request)) => request.there = *work,
                (Did::LetGo(LAZY), Some(request)) => request.lazy_lets_go = true,
                _ => unreachable!("nobody does anything before the first request"),
            }
        }
        self.dismiss();
        requests
    }
}

/// The requests that a change causes, one after the other.
pub fn ask(change: &Change, switches: Switches, ceiling: u64) -> Vec<Request> {
    let machine = Machine::new(switches);
    machine.coherence.set_ceiling(ceiling);
    let space = machine.prepare();
    let (old, new) = entries(change.kind);
    let mut gather = machine.coherence.gather(&space, change.cause, ());
    for page in 0..change.pages {
        gather.change(page * PAGE, PAGE, &old, &new);
    }
    if change.frees_table {
        gather.table_freed(0, change.pages * PAGE);
    }
    gather.finish().into_inner();
    machine.requests()
}

/// Whether a barrier interrupts a CPU that runs user code, one that is in the kernel, and one that borrows the space.
pub fn ask_barrier(switches: Switches) -> [bool; 3] {
    let [user, lazy] = barrier(switches, RUNNING, true);
    let [kernel, _] = barrier(switches, RUNNING, false);
    [user, kernel, lazy]
}

fn barrier(switches: Switches, cpu: usize, in_user: bool) -> [bool; 2] {
    let machine = Machine::new(switches);
    let space = machine.prepare();
    if !in_user {
        machine.on(cpu, |_| machine.coherence.leave_user());
    }
    machine.coherence.barrier(&space);
    let requests = machine.requests();
    [requests.iter().any(|request| request.tells_running), requests.iter().any(|request| request.tells_lazy)]
}

/// The entry before and after.
fn entries(kind: Kind) -> (Translation, Translation) {
    let used = Translation {
        present: true,
        frame: 7,
        writable: true,
        user: true,
        accessed: true,
        dirty: true,
        ..Translation::default()
    };
    let read_only = Translation { writable: false, ..used };
    match kind {
        Kind::Remove => (used, Translation::default()),
        Kind::Demote => (used, read_only),
        Kind::Promote => (read_only, used),
        Kind::Untouched => (Translation::default(), Translation::default()),
    }
}

impl Change {
    /// A change of pages whose reason is of no interest.
    pub fn plain(kind: Kind, pages: u64) -> Self {
        Change { kind, pages, frees_table: false, cause: Cause::Munmap, shared: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: Kind, pages: u64, without: &str) -> Vec<Request> {
        ask(&Change::plain(kind, pages), Switches::DEFAULT.without(without).unwrap(), 33)
    }

    #[test]
    fn answers_are_the_protocols() {
        let told = Request {
            tells_running: true,
            here: Work::Pages(2),
            there: Work::Pages(2),
            ..Request::default()
        };
        assert_eq!(asked(Kind::Remove, 2, ""), [told]);
        assert_eq!(asked(Kind::Demote, 2, ""), [told]);
        assert_eq!(asked(Kind::Promote, 2, ""), []);
        assert_eq!(asked(Kind::Untouched, 2, "vanilla"), []);
        let all = Request { here: Work::All, there: Work::All, ..told };
        assert_eq!(asked(Kind::Remove, 34, ""), [all]);
        assert_eq!(asked(Kind::Promote, 2, "promotion"), [told]);
        assert_eq!(asked(Kind::Remove, 2, "gather").len(), 2);
        let lazy = asked(Kind::Remove, 1, "lazy");
        assert!(lazy.len() == 1 && lazy[0].tells_lazy && lazy[0].lazy_lets_go);
        let table = Change { frees_table: true, ..Change::plain(Kind::Remove, 1) };
        assert!(ask(&table, Switches::DEFAULT, 33)[0].tells_lazy);
    }

    #[test]
    fn barriers_are_for_user_mode() {
        assert_eq!(ask_barrier(Switches::DEFAULT), [true, false, false]);
    }
}
