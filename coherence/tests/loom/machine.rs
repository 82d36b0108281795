//! A machine of loom threads: `coherence` on its `hardware`, as scenarios see it.
//!
//! * Each CPU's script runs on a thread of its own; [`World::on`] runs a part of one on the calling thread.
//! * A frame has one word of content, accessed `Relaxed`: what user code stores through a translation, and a kernel reads to copy it.
//! * User code also has two variables, `x` and `y`, accessed `Relaxed` too: of barriers it knows none but those it asks for. A scenario
//!   decides whether crossings between user mode and kernel are counted.
//! * The promises that a scenario may see broken are named here.

use std::cell::RefCell;
use std::sync::Arc;

use coherence::{Coherence, Fault, Mode, Platform, Space, Switches};
use loom::sync::atomic::{AtomicU64, Ordering::*};

use crate::hardware::{Hardware, SimulatedCpu, Tables};

pub(crate) const PAGE: u64 = 4096;
/// The promises, as findings name them. By these words a test also knows that the oracle spoke, and not some other panic.
pub(crate) const UNSAFE_FRAME: &str = "D1, frame safety";
pub(crate) const EARLY_RETURN: &str = "D3, linearizable returns";
pub(crate) const LOST_STORE: &str = "D2, write integrity";
pub(crate) const UNORDERED: &str = "B, order of accesses";

pub(crate) struct World {
    /// In a box, as loom's threads have small stacks.
    pub(crate) coherence: Box<Coherence<Hardware>>,
    pub(crate) spaces: [Arc<Space>; 2],
    pub(crate) x: AtomicU64,
    pub(crate) y: AtomicU64,
}

// loom runs all its threads on one thread of the host, so only its own thread-locals tell them apart.
loom::thread_local! {
    static CURRENT: RefCell<Option<(Arc<World>, usize)>> = RefCell::new(None);
}

pub(crate) fn current() -> (Arc<World>, usize) {
    CURRENT.with(|current| current.borrow().clone().expect("only a CPU's thread calls the platform"))
}

/// What is different from one scenario to the next.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) cpus: usize,
    pub(crate) tags: usize,
    pub(crate) speculates: bool,
    pub(crate) remote: bool,
    pub(crate) device: bool,
    pub(crate) counts_crossings: bool,
    pub(crate) awaited: Option<usize>,
    pub(crate) follower: Option<usize>,
    pub(crate) fault: Option<Fault>,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Arc<Self> {
        let coherence = Self::coherence(&setting);
        let spaces = [0, 1].map(|root| Arc::new(coherence.new_space(root)));
        Arc::new(World { coherence, spaces, x: AtomicU64::new(0), y: AtomicU64::new(0) })
    }

    #[inline(never)]
    fn coherence(setting: &Setting) -> Box<Coherence<Hardware>> {
        let hardware = Hardware::new(setting);
        let switches = Switches { sharers: true, ..Switches::DEFAULT };
        Box::new(Coherence::new(hardware, switches).with_fault(setting.fault))
    }

    pub(crate) fn hardware(&self) -> &Hardware {
        self.coherence.platform()
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.hardware().tables[0]
    }

    /// Runs a part of a CPU's script on the calling thread.
    pub(crate) fn on<R>(self: &Arc<Self>, cpu: usize, script: impl FnOnce(&Self) -> R) -> R {
        let before = CURRENT.with(|current| current.replace(Some((self.clone(), cpu))));
        let result = script(self);
        CURRENT.with(|current| current.replace(before));
        result
    }

    /// A thread that runs a CPU's script, and then idles.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        cpu: usize,
        script: impl FnOnce(&Self) + 'static,
    ) -> loom::thread::JoinHandle<()> {
        let world = self.clone();
        loom::thread::spawn(move || {
            world.on(cpu, script);
            world.hardware().script_is_over(cpu);
        })
    }

    fn me(&self) -> &SimulatedCpu {
        &self.hardware().cpus[current().1]
    }

    pub(crate) fn activate(&self, space: usize) {
        let leaving = self.me().loaded.lock().unwrap().clone();
        self.hardware()
            .without_interrupts(|| self.coherence.activate(leaving.as_deref(), &self.spaces[space]));
        *self.me().loaded.lock().unwrap() = Some(self.spaces[space].clone());
    }

    /// The way back to user mode.
    pub(crate) fn enter_user(&self) {
        let loaded = self.me().loaded.lock().unwrap().clone();
        self.hardware().without_interrupts(|| self.coherence.enter_user(loaded.as_deref()));
    }

    /// A system call begins.
    pub(crate) fn leave_user(&self) {
        self.hardware().without_interrupts(|| self.coherence.leave_user());
    }

    /// Loads the root of space 0 once more, and drops what is cached of it.
    pub(crate) fn drop_and_reload(&self) {
        self.hardware().without_interrupts(|| self.coherence.load_again(&self.spaces[0], 0));
    }

    pub(crate) fn go_lazy(&self) {
        let loaded = self.me().loaded.lock().unwrap().clone().expect("something is loaded");
        self.hardware().without_interrupts(|| self.coherence.go_lazy(&loaded));
    }

    pub(crate) fn leave(&self) {
        let loaded = self.me().loaded.lock().unwrap().take().expect("something is loaded");
        self.hardware().without_interrupts(|| self.coherence.leave(&loaded));
    }

    /// User code touches a page of space 0. Afterwards an interrupt may come.
    pub(crate) fn touch(&self, page: usize) {
        if let Some(frame) = self.find(page) {
            let freed = self.hardware().freed_frames[frame as usize].load(Relaxed);
            assert!(
                !freed,
                "{UNSAFE_FRAME}: CPU {} used a freed frame through a stale translation",
                current().1
            );
        }
        self.window();
    }

    /// User code stores 1 in a page of space 0, if it is mapped; says whether it was.
    pub(crate) fn store(&self, page: usize) -> bool {
        let frame = self.find(page);
        if let Some(frame) = frame {
            self.hardware().contents[frame as usize].store(1, Relaxed);
        }
        frame.is_some()
    }

    /// The frame that user code would use for a page of space 0 now.
    pub(crate) fn find(&self, page: usize) -> Option<u64> {
        let frame = self.hardware().walk(current().1, page)?;
        self.hardware().uses[page].is_used();
        Some(frame)
    }

    /// The caller goes on as if no CPU could use the page any more: every use must have come before.
    pub(crate) fn rely_on_absence(&self, page: usize) {
        self.hardware().uses[page].changes_owner();
    }

    /// Hardware walks on its own, as it may at any moment with the root that is loaded. Afterwards an interrupt may come.
    pub(crate) fn speculate(&self) {
        self.hardware().speculate();
        self.window();
    }

    /// A moment at which an interrupt may come; says whether one came.
    pub(crate) fn window(&self) -> bool {
        self.take_interrupt(current().1, Mode::User)
    }

    pub(crate) fn is_freed(&self, frame: usize) -> bool {
        self.hardware().freed_frames[frame].load(Relaxed)
    }

    /// The frame gets a new owner.
    pub(crate) fn free_frame(&self, frame: usize) {
        self.hardware().freed_frames[frame].store(true, Relaxed);
    }

    /// Says whether there was one.
    pub(crate) fn take_interrupt(&self, cpu: usize, mode: Mode) -> bool {
        let cpu = &self.hardware().cpus[cpu];
        let pending = cpu.pending.swap(false, AcqRel);
        if pending {
            let loaded = cpu.loaded.lock().unwrap().clone();
            self.hardware().without_interrupts(|| self.coherence.handle_requests(loaded.as_deref(), mode));
        }
        pending
    }
}
