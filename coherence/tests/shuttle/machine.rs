//! A machine of shuttle tasks: page tables, CPUs that cache all they may, interrupts, and an oracle.
//!
//! * Frames and tables are never used twice, so whoever touches one after it was freed is caught, however much later.
//! * A CPU caches what it walks, upper levels too, until it is made to drop it. A fault drops the faulting address, as on x86.
//! * Interrupts are taken between steps of user code, and in every loop that waits.
//! * The oracle's records are plain values: shuttle switches tasks only at its own atomics, so each check is one step.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use coherence::{Coherence, CpuId, CpuSet, Fault, Mode, Platform, Space, Switches, Tag};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

pub(crate) const PAGE: u64 = 4096;
pub(crate) const PAGES_PER_TABLE: usize = 2;
pub(crate) const TABLES: usize = 2;
pub(crate) const PAGES: usize = PAGES_PER_TABLE * TABLES;

/// The words by which a test knows that the oracle spoke, and not some other panic.
pub(crate) const STALE: &str = "stale translation";

/// What an entry says. An entry of all zeroes is not present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) frame: usize,
    pub(crate) writable: bool,
}

impl Entry {
    pub(crate) fn bits(self) -> u64 {
        (self.frame as u64) << 2 | u64::from(self.writable) << 1 | 1
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits & 1 == 1).then_some(Entry { frame: bits as usize >> 2, writable: bits & 2 != 0 })
    }
}

/// What the oracle knows of a frame. It has one place in its life.
#[derive(Default)]
pub(crate) struct Frame {
    place: (usize, usize),
    unhooked: bool,
    /// It has a new owner, or a program was told that it is no longer mapped.
    gone: bool,
    /// Programs were told that it cannot be written.
    pub(crate) protected: bool,
    /// How often its protection changed.
    pub(crate) changes: usize,
}

/// A page-table page.
pub(crate) struct Table {
    pub(crate) entries: [AtomicU64; PAGES_PER_TABLE],
    /// A shuttle atomic, so that others may run before a walk reaches the table.
    freed: AtomicBool,
}

/// An address space: its upper level holds the numbers of its tables, 0 for none.
pub(crate) struct Tables {
    pub(crate) upper: [AtomicUsize; TABLES],
    lock: AtomicBool,
}

#[derive(Default)]
struct Caches {
    root: Option<(usize, Tag)>,
    interrupts_off: bool,
    translations: HashMap<(Tag, usize), Entry>,
    upper_levels: HashMap<(Tag, usize), usize>,
}

struct SimulatedCpu {
    pending: AtomicBool,
    caches: Mutex<Caches>,
    loaded: Mutex<Option<usize>>,
    mode: Mutex<Mode>,
}

pub(crate) struct Hardware {
    cpus: Vec<SimulatedCpu>,
    tags: usize,
    world: OnceLock<Weak<World>>,
    spaces: Vec<Tables>,
    tables: Mutex<Vec<Arc<Table>>>,
    frames: Mutex<Vec<Frame>>,
}

pub(crate) struct World {
    pub(crate) coherence: Coherence<Hardware>,
    pub(crate) spaces: Vec<Space>,
    finished: AtomicUsize,
}

shuttle::thread_local! {
    static CPU: std::cell::Cell<usize> = std::cell::Cell::new(usize::MAX);
}

pub(crate) fn current() -> usize {
    CPU.with(std::cell::Cell::get)
}

impl World {
    pub(crate) fn new(
        cpus: usize,
        spaces: usize,
        tags: usize,
        switches: Switches,
        fault: Option<Fault>,
    ) -> Arc<Self> {
        let cpu = |_| SimulatedCpu {
            pending: AtomicBool::new(false),
            caches: Mutex::default(),
            loaded: Mutex::default(),
            mode: Mutex::new(Mode::Idle),
        };
        let space = |_| Tables { upper: Default::default(), lock: AtomicBool::new(false) };
        let hardware = Hardware {
            cpus: (0..cpus).map(cpu).collect(),
            tags,
            world: OnceLock::new(),
            spaces: (0..spaces).map(space).collect(),
            tables: Mutex::default(),
            frames: Mutex::default(),
        };
        let coherence = Coherence::new(hardware, switches).with_fault(fault);
        let spaces = (0..spaces).map(|root| coherence.new_space(root as u64)).collect();
        let world = Arc::new(World { coherence, spaces, finished: AtomicUsize::new(0) });
        world.hardware().world.set(Arc::downgrade(&world)).expect("the world is new");
        world
    }

    pub(crate) fn hardware(&self) -> &Hardware {
        self.coherence.platform()
    }

    /// Runs a script on each CPU, and checks in the end that nothing is left over.
    pub(crate) fn run(self: &Arc<Self>, script: impl Fn(&World) + Clone + Send + 'static) {
        let cpus = self.hardware().cpus.len();
        let run = |cpu| {
            let (world, script) = (self.clone(), script.clone());
            shuttle::thread::spawn(move || {
                CPU.with(|current| current.set(cpu));
                script(&world);
                world.leave();
                // Others may still wait for this CPU.
                world.finished.fetch_add(1, SeqCst);
                while world.finished.load(SeqCst) < cpus {
                    world.coherence.platform().relax();
                }
            })
        };
        let tasks: Vec<_> = (0..cpus).map(run).collect();
        tasks.into_iter().for_each(|task| task.join().expect("the script ends"));
        for space in &self.spaces {
            assert!(space.active().is_empty() && space.lazy().is_empty(), "a CPU is still in a set");
        }
    }

    fn me(&self) -> &SimulatedCpu {
        &self.hardware().cpus[current()]
    }

    fn loaded(&self) -> Option<&Space> {
        self.me().loaded.lock().unwrap().map(|space| &self.spaces[space])
    }

    pub(crate) fn activate(&self, space: usize) {
        self.hardware().without_interrupts(|| self.coherence.activate(self.loaded(), &self.spaces[space]));
        *self.me().loaded.lock().unwrap() = Some(space);
        *self.me().mode.lock().unwrap() = Mode::User;
    }

    /// A kernel thread takes the CPU.
    pub(crate) fn go_lazy(&self) {
        if let Some(loaded) = self.loaded() {
            self.hardware().without_interrupts(|| self.coherence.go_lazy(loaded));
        }
        *self.me().mode.lock().unwrap() = Mode::Kernel;
    }

    pub(crate) fn leave(&self) {
        if let Some(loaded) = self.loaded() {
            self.hardware().without_interrupts(|| self.coherence.leave(loaded));
        }
        *self.me().loaded.lock().unwrap() = None;
        *self.me().mode.lock().unwrap() = Mode::Idle;
    }

    /// A moment at which an interrupt may come, and the walker may run ahead.
    pub(crate) fn window(&self) {
        self.hardware().speculate();
        if self.me().pending.swap(false, SeqCst) {
            let mode = *self.me().mode.lock().unwrap();
            self.hardware().without_interrupts(|| self.coherence.handle_requests(self.loaded(), mode));
        }
    }

    /// Holds the page-table lock of a space while `work` runs. Interrupts stay on, so whoever waits answers requests.
    pub(crate) fn locked<R>(&self, space: usize, work: impl FnOnce(&Tables) -> R) -> R {
        let tables = &self.hardware().spaces[space];
        while tables.lock.swap(true, SeqCst) {
            self.hardware().relax();
        }
        let result = work(tables);
        tables.lock.store(false, SeqCst);
        result
    }
}

impl Hardware {
    fn caches(&self) -> MutexGuard<'_, Caches> {
        self.cpus[current()].caches.lock().unwrap()
    }

    pub(crate) fn frames(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.frames.lock().unwrap()
    }

    pub(crate) fn table(&self, number: usize) -> Arc<Table> {
        self.tables.lock().unwrap()[number - 1].clone()
    }

    /// A new table; returns its number.
    pub(crate) fn new_table(&self) -> usize {
        let mut tables = self.tables.lock().unwrap();
        tables.push(Arc::new(Table { entries: Default::default(), freed: AtomicBool::new(false) }));
        tables.len()
    }

    pub(crate) fn free_table(&self, number: usize) {
        self.table(number).freed.store(true, SeqCst);
    }

    /// A new frame for a page of a space; returns its number.
    pub(crate) fn new_frame(&self, space: usize, page: usize) -> usize {
        let mut frames = self.frames();
        frames.push(Frame { place: (space, page), ..Frame::default() });
        frames.len() - 1
    }

    pub(crate) fn unhooked(&self, frame: usize) {
        self.frames()[frame].unhooked = true;
    }

    /// The frames that have been taken out of a place so far.
    pub(crate) fn formerly_at(&self, space: usize, page: usize) -> Vec<usize> {
        let frames = self.frames();
        (0..frames.len())
            .filter(|frame| frames[*frame].place == (space, page) && frames[*frame].unhooked)
            .collect()
    }

    /// From now on nobody may use these frames.
    pub(crate) fn must_be_gone(&self, gone: &[usize]) {
        let mut frames = self.frames();
        gone.iter().for_each(|frame| frames[*frame].gone = true);
    }

    /// User code gets through to a page, if its caches and the tables let it.
    pub(crate) fn access(&self, page: usize, write: bool) -> bool {
        let Some((root, tag)) = self.caches().root else {
            return false;
        };
        let cached = self.caches().translations.get(&(tag, page)).copied();
        let Some(entry) = cached.or_else(|| self.walk(root, tag, page)) else {
            return false;
        };
        self.caches().translations.insert((tag, page), entry);
        if write && !entry.writable {
            return false;
        }
        let frame = &self.frames()[entry.frame];
        assert!(!frame.gone, "{STALE}: CPU {} used a frame that is gone", current());
        assert!(!(write && frame.protected), "{STALE}: CPU {} wrote a protected frame", current());
        true
    }

    /// What a fault does to the caches.
    pub(crate) fn faulted(&self, page: usize) {
        let mut caches = self.caches();
        if let Some((_, tag)) = caches.root {
            caches.translations.remove(&(tag, page));
            caches.upper_levels.remove(&(tag, page / PAGES_PER_TABLE));
        }
    }

    fn walk(&self, root: usize, tag: Tag, page: usize) -> Option<Entry> {
        let index = page / PAGES_PER_TABLE;
        let cached = self.caches().upper_levels.get(&(tag, index)).copied();
        let number = match cached {
            Some(number) => number,
            None => match self.spaces[root].upper[index].load(SeqCst) {
                0 => return None,
                number => number,
            },
        };
        self.caches().upper_levels.insert((tag, index), number);
        let table = self.table(number);
        assert!(!table.freed.load(SeqCst), "{STALE}: CPU {} walked a freed table", current());
        Entry::from_bits(table.entries[page % PAGES_PER_TABLE].load(SeqCst))
    }

    /// The walker runs ahead, and what it finds is cached or not; here not, so that it walks again.
    fn speculate(&self) {
        let root = self.caches().root;
        if let Some((root, tag)) = root {
            self.walk(root, tag, 0);
        }
    }

    fn drop_all(&self, tag: Tag) {
        let mut caches = self.caches();
        caches.translations.retain(|(cached, _), _| *cached != tag);
        caches.upper_levels.retain(|(cached, _), _| *cached != tag);
    }
}

// SAFETY: nothing here is accessed through the simulated translations; the oracle checks what the promises are for.
unsafe impl Platform for Hardware {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(current()).expect("a scenario has few CPUs")
    }

    fn interrupt(&self, targets: &CpuSet) {
        targets.iter().for_each(|target| self.cpus[target.index()].pending.store(true, SeqCst));
    }

    fn interrupts_enabled(&self) -> bool {
        !self.caches().interrupts_off
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = std::mem::replace(&mut self.caches().interrupts_off, true);
        let result = work();
        self.caches().interrupts_off = before;
        result
    }

    fn tags(&self) -> usize {
        self.tags
    }

    fn invalidate_page(&self, address: u64) {
        self.speculate();
        let root = self.caches().root;
        if let Some((_, tag)) = root {
            let mut caches = self.caches();
            caches.translations.remove(&(tag, (address / PAGE) as usize));
            // As on x86, all cached upper levels go.
            caches.upper_levels.retain(|(cached, _), _| *cached != tag);
        }
    }

    fn invalidate_all(&self) {
        self.speculate();
        let root = self.caches().root;
        if let Some((_, tag)) = root {
            self.drop_all(tag);
        }
    }

    fn load_root(&self, root: u64, tag: Tag, keep: bool) {
        self.speculate();
        if !keep {
            self.drop_all(tag);
        }
        self.caches().root = Some((root as usize, tag));
    }

    fn load_kernel_root(&self) {
        self.speculate();
        let root = self.caches().root.take();
        if let (1, Some((_, tag))) = (self.tags, root) {
            self.drop_all(tag);
        }
    }

    fn relax(&self) {
        self.world.get().and_then(Weak::upgrade).expect("the world outlives its tasks").window();
        shuttle::thread::yield_now();
    }
}
