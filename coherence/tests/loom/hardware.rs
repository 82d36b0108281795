//! The hardware of loom's machine: page tables in weakly ordered memory, CPUs that cache whatever they may, and interrupts.
//!
//! * An entry is an atomic that is read and written `Relaxed`: it promises nothing but itself, as for a hardware walker.
//! * A CPU caches each translation it walks, and the fact that the table is there, until it is made to drop them. With
//!   `speculates` it also walks on its own, right before each instruction that would end the possibility.
//! * An interrupt is taken at a CPU's next `window` or waiting loop. When a CPU's script is over it sits in
//!   its idle loop, with nothing to do but take interrupts; the waiting initiator's thread then plays that part. Two loops
//!   that wait while a third thread has work would take turns until loom gives up: with `awaited` they sleep until that one's script is over. All
//!   that these loops do orders them after those that they play or sleep for; the loop of a `follower`, which waits for another's round, does nothing of the kind.
//! * A machine with `remote` drops translations on other CPUs by itself: what is ordered arrives at a CPU before its next use of its
//!   caches, also with interrupts off. All its tags are shared ones.
//! * What no CPU may do is asserted where it would do it: use a frame, or walk a table, that has been freed. That every walk came *before*
//!   the freeing, and is not merely early enough here, a cell shows that loom watches: walking reads it, and freeing writes it. Another such
//!   cell is read by every use of a page, and written by who relies on its being gone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use coherence::{CpuId, CpuSet, Crossings, Flush, Mode, Platform, RemoteFlush, Space, Tag};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use crate::devices::Device;
use crate::machine::{PAGE, Setting, UNSAFE_FRAME, current};

const EVERYTHING: u64 = !0;

/// The page table of one space: an upper entry that points to one table of two entries. Frame 0 means "not present".
pub(crate) struct Tables {
    pub(crate) upper: AtomicBool,
    pub(crate) entries: [AtomicU64; 2],
    freed: AtomicBool,
    /// The table's page, as one owner after the other has it.
    page: Page,
}

/// What has owners one after the other. loom sees to it that every use by one comes before the next has it.
pub(crate) struct Page(UnsafeCell<()>);

// SAFETY: there is nothing in it to share.
unsafe impl Sync for Page {}

impl Page {
    /// Its owner uses it.
    pub(crate) fn is_used(&self) {
        self.0.with(|_| ());
    }

    /// It gets another owner, after whom nobody uses it.
    pub(crate) fn changes_owner(&self) {
        self.0.with_mut(|_| ());
    }
}

impl Tables {
    /// The table's page gets a new owner.
    pub(crate) fn free(&self) {
        self.page.changes_owner();
        self.freed.store(true, Relaxed);
    }
}

#[derive(Default)]
struct Caches {
    root: Option<(usize, Tag)>,
    interrupts_off: bool,
    translations: HashMap<(Tag, usize), u64>,
    upper_levels: HashSet<Tag>,
}

pub(crate) struct SimulatedCpu {
    pub(crate) pending: AtomicBool,
    /// Pages that others ordered to be dropped here: a bit for each, or `EVERYTHING`.
    ordered: AtomicU64,
    idle: AtomicBool,
    /// It has interrupted others.
    has_sent: std::sync::atomic::AtomicBool,
    /// Its script is over, for those that sleep until then.
    over: (loom::sync::Mutex<bool>, loom::sync::Condvar),
    crossings: Crossings,
    caches: Mutex<Caches>,
    pub(crate) loaded: Mutex<Option<Arc<Space>>>,
}

pub(crate) struct Hardware {
    pub(crate) cpus: Vec<SimulatedCpu>,
    tags: usize,
    speculates: bool,
    remote: bool,
    has_device: bool,
    pub(crate) device: Device,
    counts_crossings: bool,
    awaited: Option<usize>,
    follower: Option<usize>,
    /// By root: two spaces, the first of which maps its pages to frames 1 and 2.
    pub(crate) tables: [Tables; 2],
    pub(crate) freed_frames: [AtomicBool; 3],
    /// By page of space 0.
    pub(crate) uses: [Page; 2],
    /// By frame: what was stored in it.
    pub(crate) contents: [AtomicU64; 3],
    /// At most one thread plays the idle CPUs at a time.
    idle_loop: loom::sync::Mutex<()>,
}

impl Hardware {
    pub(crate) fn new(setting: &Setting) -> Self {
        let cpu = || SimulatedCpu {
            pending: AtomicBool::new(false),
            ordered: AtomicU64::new(0),
            idle: AtomicBool::new(false),
            has_sent: false.into(),
            over: (loom::sync::Mutex::new(false), loom::sync::Condvar::new()),
            crossings: Crossings::new(),
            caches: Mutex::default(),
            loaded: Mutex::default(),
        };
        let tables = |frames: [u64; 2]| Tables {
            upper: AtomicBool::new(true),
            entries: frames.map(AtomicU64::new),
            freed: AtomicBool::new(false),
            page: Page(UnsafeCell::new(())),
        };
        Hardware {
            cpus: (0..setting.cpus).map(|_| cpu()).collect(),
            tags: setting.tags,
            speculates: setting.speculates,
            remote: setting.remote,
            has_device: setting.device,
            device: Device::new(),
            counts_crossings: setting.counts_crossings,
            awaited: setting.awaited,
            follower: setting.follower,
            tables: [tables([1, 2]), tables([0, 0])],
            freed_frames: [(); 3].map(|()| AtomicBool::new(false)),
            uses: [(); 2].map(|()| Page(UnsafeCell::new(()))),
            contents: [0; 3].map(AtomicU64::new),
            idle_loop: loom::sync::Mutex::new(()),
        }
    }

    /// A CPU's script is over, and it idles from here on.
    pub(crate) fn script_is_over(&self, cpu: usize) {
        self.cpus[cpu].idle.store(true, Release);
        if self.awaited == Some(cpu) {
            let (over, changed) = &self.cpus[cpu].over;
            *over.lock().unwrap() = true;
            changed.notify_all();
        }
    }

    fn caches(&self) -> std::sync::MutexGuard<'_, Caches> {
        self.cpus[current().1].caches.lock().unwrap()
    }

    /// What others have ordered to be dropped is dropped on a CPU.
    fn take_orders(&self, cpu: usize) {
        if !self.remote {
            return;
        }
        let pages = self.cpus[cpu].ordered.swap(0, AcqRel);
        if pages != 0 {
            let is_meant = |page: usize| pages == EVERYTHING || pages & (1 << page) != 0;
            let mut caches = self.cpus[cpu].caches.lock().unwrap();
            caches.translations.retain(|(_, page), _| !is_meant(*page));
            caches.upper_levels.clear();
        }
    }

    /// What a CPU finds for a page: in its caches, or else in the tables, and then it is in the caches.
    pub(crate) fn walk(&self, cpu: usize, page: usize) -> Option<u64> {
        self.take_orders(cpu);
        let (_, tag) = self.cpus[cpu].caches.lock().unwrap().root?;
        if let Some(frame) = self.cpus[cpu].caches.lock().unwrap().translations.get(&(tag, page)) {
            return Some(*frame);
        }
        let frame = self.walk_tables(cpu, page)?;
        self.cpus[cpu].caches.lock().unwrap().translations.insert((tag, page), frame);
        Some(frame)
    }

    /// What a CPU's walker finds for a page, by the way to the table that it has cached or finds and caches.
    fn walk_tables(&self, cpu: usize, page: usize) -> Option<u64> {
        let (root, tag) = self.cpus[cpu].caches.lock().unwrap().root?;
        if !self.cpus[cpu].caches.lock().unwrap().upper_levels.contains(&tag) {
            if !self.tables[root].upper.load(Relaxed) {
                return None;
            }
            self.cpus[cpu].caches.lock().unwrap().upper_levels.insert(tag);
        }
        assert!(!self.tables[root].freed.load(Relaxed), "{UNSAFE_FRAME}: CPU {cpu} walked a freed table");
        self.tables[root].page.is_used();
        let frame = self.tables[root].entries[page].load(Relaxed);
        (frame != 0).then_some(frame)
    }

    /// A walk of which only the upper level is cached afterwards: the adversary's choice, as it leads to more walks.
    pub(crate) fn speculate(&self) {
        if self.speculates {
            self.take_orders(current().1);
            self.walk_tables(current().1, 0);
        }
    }

    fn drop_all(&self, tag: Tag) {
        let mut caches = self.caches();
        caches.translations.retain(|(cached, _), _| *cached != tag);
        caches.upper_levels.remove(&tag);
    }
}

// SAFETY: nothing here is accessed through the simulated translations; the oracle checks what the promises are for.
unsafe impl Platform for Hardware {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(current().1).expect("a scenario has few CPUs")
    }

    fn interrupt(&self, targets: &CpuSet) {
        assert!(!targets.is_empty(), "an interrupt is for nobody");
        self.cpus[current().1].has_sent.store(true, Relaxed);
        for target in targets {
            // A latch, set and taken by read-modify-writes: loom cannot order a plain store against those.
            self.cpus[target.index()].pending.swap(true, AcqRel);
        }
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

    fn has_devices(&self) -> bool {
        self.has_device
    }

    fn invalidate_devices(&self, _: &Space, flush: &Flush) {
        self.device.drop_pages(flush, || self.relax());
    }

    fn shared_tags(&self) -> usize {
        if self.remote { self.tags } else { 0 }
    }

    fn flush_remotely(&self, order: &RemoteFlush) -> bool {
        if self.remote {
            let list = |(start, count, stride): (u64, u64, u64)| {
                (0..count).map(|page| 1 << ((start + page * stride) / PAGE)).sum()
            };
            let pages = order.flush().span().map_or(EVERYTHING, list);
            for target in &order.targets() {
                self.cpus[target.index()].ordered.fetch_or(pages, AcqRel);
            }
        }
        self.remote
    }

    fn wait_for_remote_flushes(&self) {
        while self.cpus.iter().any(|cpu| cpu.ordered.load(Acquire) != 0) {
            self.relax();
        }
    }

    fn invalidate_page(&self, address: u64) {
        self.speculate();
        let mut caches = self.caches();
        if let Some((_, tag)) = caches.root {
            caches.translations.remove(&(tag, (address / PAGE) as usize));
            caches.upper_levels.remove(&tag);
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

    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        self.counts_crossings.then(|| &self.cpus[cpu.index()].crossings)
    }

    fn relax(&self) {
        let (world, me) = current();
        world.take_interrupt(me, Mode::Kernel);
        if self.follower == Some(me) && !self.cpus[me].has_sent.load(Relaxed) {
            return loom::thread::yield_now();
        }
        if let Some(cpu) = self.awaited {
            let (over, changed) = &self.cpus[cpu].over;
            let mut over = over.lock().unwrap();
            while !*over {
                over = changed.wait(over).unwrap();
            }
        }
        let idle_loop = self.idle_loop.lock().unwrap();
        for cpu in (0..self.cpus.len()).filter(|cpu| *cpu != me) {
            if self.cpus[cpu].idle.load(Acquire) {
                self.take_orders(cpu);
                world.on(cpu, |world| world.take_interrupt(cpu, Mode::Idle));
            }
        }
        drop(idle_loop);
        loom::thread::yield_now();
    }
}
