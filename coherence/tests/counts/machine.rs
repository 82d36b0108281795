//! A machine without concurrency: an interrupt runs the target's handler at once, on the caller's thread.
//!
//! Only such a machine gives exact counts of everything. It logs what each CPU executes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use coherence::{
    Asked, Cause, Coherence, CpuId, CpuSet, Crossings, Flush, Mode, Platform, RemoteFlush, Row, Space,
    Switches, Tag,
};

pub(crate) const PAGE: u64 = 4096;

/// What a CPU's translation caches were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Page(u64),
    All,
    Load { root: u64, keep: bool },
    LoadKernel,
    Remote(CpuSet),
    WaitForRemote,
    Devices(Flush),
    Asked(Asked),
    Serialise,
}

/// What is unusual about a machine.
#[derive(Clone, Copy, Default)]
pub(crate) struct Features {
    pub(crate) tags: usize,
    /// Reaches other CPUs without interrupts.
    pub(crate) remote: bool,
    /// These CPUs do not run, and are flushed before they do.
    pub(crate) descheduled: CpuSet,
    pub(crate) devices: bool,
    /// What interrupts ask for is in the log.
    pub(crate) logs_interrupts: bool,
    /// Other CPUs have interrupts off, and answer in a loop of theirs.
    pub(crate) deaf: bool,
}

#[derive(Default)]
pub(crate) struct Hardware {
    machine: OnceLock<Weak<Machine>>,
    features: Features,
    /// CPUs to which an interrupt is on its way.
    asked: Mutex<CpuSet>,
    /// What happens before the next interrupt arrives.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// What happens before a CPU next drops something, or loads another root.
    before_dropping: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    current: AtomicUsize,
    interrupts_off: AtomicBool,
    log: Mutex<Vec<(usize, Did)>>,
    /// One for each CPU, or none at all.
    crossings: Vec<Crossings>,
    serialised: AtomicUsize,
    restarted: AtomicUsize,
}

pub(crate) struct Machine {
    pub(crate) coherence: Coherence<Hardware>,
    loaded: Vec<Mutex<Option<Arc<Space>>>>,
    modes: Vec<Mutex<Mode>>,
}

impl Machine {
    pub(crate) fn new(tags: usize, switches: Switches) -> Arc<Self> {
        Self::with_features(Features { tags, ..Features::default() }, switches)
    }

    /// A machine that counts crossings between user mode and kernel.
    pub(crate) fn counting_crossings() -> Arc<Self> {
        Self::counting_crossings_with(Switches::DEFAULT)
    }

    /// The same, with these mechanisms.
    pub(crate) fn counting_crossings_with(switches: Switches) -> Arc<Self> {
        let crossings = (0..8).map(|_| Crossings::new()).collect();
        Self::with_hardware(Hardware { crossings, ..Hardware::default() }, switches)
    }

    /// A machine that drops translations on other CPUs by itself.
    pub(crate) fn reaching_remotely(tags: usize) -> Arc<Self> {
        Self::with_features(Features { tags, remote: true, ..Features::default() }, Switches::DEFAULT)
    }

    pub(crate) fn with_features(features: Features, switches: Switches) -> Arc<Self> {
        Self::with_hardware(Hardware { features, ..Hardware::default() }, switches)
    }

    fn with_hardware(hardware: Hardware, switches: Switches) -> Arc<Self> {
        let cpus = 0..8;
        let machine = Arc::new(Machine {
            coherence: Coherence::new(hardware, switches),
            loaded: cpus.clone().map(|_| Mutex::default()).collect(),
            modes: cpus.map(|_| Mutex::new(Mode::Idle)).collect(),
        });
        machine.hardware().machine.set(Arc::downgrade(&machine)).expect("it is new");
        machine
    }

    fn hardware(&self) -> &Hardware {
        self.coherence.platform()
    }

    pub(crate) fn space(&self, root: u64) -> Arc<Space> {
        Arc::new(self.coherence.new_space(root))
    }

    /// Runs something as that CPU.
    pub(crate) fn on<R>(&self, cpu: usize, work: impl FnOnce() -> R) -> R {
        let before = self.hardware().current.swap(cpu, Relaxed);
        let result = work();
        self.hardware().current.store(before, Relaxed);
        result
    }

    /// A switch happens in the kernel, and may end in user mode.
    fn switch(&self, cpu: usize, mode: Mode, work: impl FnOnce(&mut Option<Arc<Space>>)) {
        self.set_mode(cpu, Mode::Kernel);
        let mut loaded = self.loaded[cpu].lock().unwrap();
        self.on(cpu, || self.hardware().without_interrupts(|| work(&mut loaded)));
        drop(loaded);
        self.set_mode(cpu, mode);
    }

    fn set_mode(&self, cpu: usize, mode: Mode) {
        let before = std::mem::replace(&mut *self.modes[cpu].lock().unwrap(), mode);
        if self.hardware().crossings.is_empty() || (before == Mode::User) == (mode == Mode::User) {
            return;
        }
        self.on(cpu, || match mode {
            Mode::User => self.coherence.enter_user(self.loaded[cpu].lock().unwrap().as_deref()),
            Mode::Kernel | Mode::Idle => self.coherence.leave_user(),
        });
    }

    /// A system call begins on the CPU.
    pub(crate) fn call(&self, cpu: usize) {
        self.set_mode(cpu, Mode::Kernel);
    }

    /// A system call ends on the CPU.
    pub(crate) fn back(&self, cpu: usize) {
        self.set_mode(cpu, Mode::User);
    }

    /// How often CPUs serialised since the last call.
    pub(crate) fn serialised(&self) -> usize {
        self.hardware().serialised.swap(0, Relaxed)
    }

    /// How often CPUs made their thread abandon its sequence since the last call.
    pub(crate) fn restarted(&self) -> usize {
        self.hardware().restarted.swap(0, Relaxed)
    }

    /// A thread of the space runs in user mode on the CPU.
    pub(crate) fn run(&self, cpu: usize, space: &Arc<Space>) {
        self.switch(cpu, Mode::User, |loaded| {
            self.coherence.activate(loaded.as_deref(), space);
            *loaded = Some(space.clone());
        });
    }

    /// As `run`, by a root of the CPU's own.
    pub(crate) fn run_at(&self, cpu: usize, space: &Arc<Space>, root: (u64, bool)) -> bool {
        let mut is_loaded = false;
        self.switch(cpu, Mode::User, |loaded| {
            is_loaded = self.coherence.activate_at(loaded.as_deref(), space, root);
            *loaded = Some(space.clone());
        });
        is_loaded
    }

    /// This CPU loads another root of the space that it uses.
    pub(crate) fn load_again(&self, space: &Space, root: u64) {
        self.hardware().without_interrupts(|| self.coherence.load_again(space, root));
    }

    /// A mistake of a kernel: on CPU 0, it does not say what the CPU leaves.
    pub(crate) fn activate_forgetting(&self, space: &Arc<Space>) {
        self.hardware().without_interrupts(|| self.coherence.activate(None, space));
    }

    /// Has something happen after the next request is posted, and before its interrupt arrives.
    pub(crate) fn meanwhile(self: &Arc<Self>, work: impl FnOnce(&Machine) + Send + 'static) {
        let machine = self.clone();
        *self.hardware().meanwhile.lock().unwrap() = Some(Box::new(move || work(&machine)));
    }

    /// Has something happen when a CPU is about to drop everything, or to load another root, and has not yet.
    pub(crate) fn before_dropping(self: &Arc<Self>, work: impl FnOnce(&Machine) + Send + 'static) {
        let machine = self.clone();
        *self.hardware().before_dropping.lock().unwrap() = Some(Box::new(move || work(&machine)));
    }

    /// Whether something that was to happen then is still to come.
    pub(crate) fn is_to_drop(&self) -> bool {
        self.hardware().before_dropping.lock().unwrap().is_some()
    }

    /// The CPU has nothing to do.
    pub(crate) fn idle(&self, cpu: usize) {
        self.switch(cpu, Mode::Idle, |loaded| {
            if let Some(loaded) = loaded {
                self.coherence.go_lazy(loaded);
            }
        });
    }

    pub(crate) fn leave(&self, cpu: usize) {
        self.switch(cpu, Mode::Idle, |loaded| {
            if let Some(loaded) = loaded.take() {
                self.coherence.leave(&loaded);
            }
        });
    }

    /// A kernel path on the CPU asks for a flush; returns its generation.
    pub(crate) fn flush(&self, cpu: usize, space: &Space, flush: Flush) -> u64 {
        let flushed = self.on(cpu, || self.coherence.flush(space, flush, Cause::Munmap));
        flushed.generation().number()
    }

    /// What the CPUs did since the last call.
    pub(crate) fn log(&self) -> Vec<(usize, Did)> {
        std::mem::take(&mut self.hardware().log.lock().unwrap())
    }

    pub(crate) fn total(&self, row: Row) -> u64 {
        self.coherence.ledger().total(row)
    }

    /// How many interrupts were sent so far, for whatever cause.
    pub(crate) fn sent(&self) -> u64 {
        self.coherence.ledger().group("sent")
    }
}

impl Hardware {
    fn machine(&self) -> Arc<Machine> {
        self.machine.get().and_then(Weak::upgrade).expect("it is still there")
    }

    fn deliver(&self, targets: &CpuSet) {
        let machine = self.machine();
        for target in targets {
            let loaded = machine.loaded[target.index()].lock().unwrap().clone();
            let mode = *machine.modes[target.index()].lock().unwrap();
            machine.on(target.index(), || {
                self.without_interrupts(|| machine.coherence.handle_requests(loaded.as_deref(), mode));
            });
        }
    }

    fn drop_cached(&self, did: Did) {
        let before = self.before_dropping.lock().unwrap().take();
        if let Some(work) = before {
            work();
        }
        self.note(did);
    }

    fn note(&self, did: Did) {
        self.log.lock().unwrap().push((self.current.load(Relaxed), did));
    }
}

// SAFETY: there are no translations here that anyone could use.
unsafe impl Platform for Hardware {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(self.current.load(Relaxed)).expect("the machine is small")
    }

    fn interrupt(&self, targets: &CpuSet) {
        assert!(!targets.contains(self.current_cpu()), "a CPU interrupts itself");
        assert!(!targets.is_empty(), "an interrupt is for nobody");
        *self.asked.lock().unwrap() = *targets;
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(work) = meanwhile {
            work();
        }
        if !self.features.deaf {
            let targets = std::mem::take(&mut *self.asked.lock().unwrap());
            self.deliver(&targets);
        }
    }

    fn interrupts_enabled(&self) -> bool {
        !self.interrupts_off.load(Relaxed)
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = self.interrupts_off.swap(true, Relaxed);
        let result = catch_unwind(AssertUnwindSafe(work));
        self.interrupts_off.store(before, Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn tags(&self) -> usize {
        self.features.tags
    }

    fn shared_tags(&self) -> usize {
        if self.features.remote { 100 } else { 0 }
    }

    fn flush_remotely(&self, order: &RemoteFlush) -> bool {
        if self.features.remote {
            assert!(!order.targets().contains(self.current_cpu()), "a CPU does its own part itself");
            self.note(Did::Remote(order.targets()));
        }
        self.features.remote
    }

    fn wait_for_remote_flushes(&self) {
        self.note(Did::WaitForRemote);
    }

    fn flush_before_running(&self, targets: &CpuSet) -> CpuSet {
        targets.intersection(&self.features.descheduled)
    }

    fn has_devices(&self) -> bool {
        self.features.devices
    }

    fn invalidate_devices(&self, _: &Space, flush: &Flush) {
        self.note(Did::Devices(*flush));
    }

    fn note_interrupt(&self, asked: Asked) {
        if self.features.logs_interrupts {
            self.note(Did::Asked(asked));
        }
    }

    fn invalidate_page(&self, address: u64) {
        self.note(Did::Page(address));
    }

    fn invalidate_all(&self) {
        self.drop_cached(Did::All);
    }

    fn load_root(&self, root: u64, _: Tag, keep: bool) {
        self.drop_cached(Did::Load { root, keep });
    }

    fn load_kernel_root(&self) {
        self.drop_cached(Did::LoadKernel);
    }

    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        self.crossings.get(cpu.index())
    }

    fn serialise(&self) {
        self.serialised.fetch_add(1, Relaxed);
        if self.features.logs_interrupts {
            self.note(Did::Serialise);
        }
    }

    fn restart_sequence(&self) {
        self.restarted.fetch_add(1, Relaxed);
    }

    fn relax(&self) {
        let targets = std::mem::take(&mut *self.asked.lock().unwrap());
        assert!(
            !targets.is_empty(),
            "every interrupt has been handled when `interrupt` returns, so there is nothing to wait for"
        );
        if !self.features.deaf {
            return self.deliver(&targets);
        }
        let machine = self.machine();
        for target in &targets {
            let loaded = machine.loaded[target.index()].lock().unwrap().clone();
            machine.on(target.index(), || {
                self.without_interrupts(|| machine.coherence.answer_requests(loaded.as_deref()));
            });
        }
    }
}
