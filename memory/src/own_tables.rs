//! Upper page tables that each CPU has for itself, so that it is known which CPUs find a leaf table.
//!
//! The tables of an address space are one tree, which `page_table` keeps. Once a program has several threads, each CPU gets a root of its own
//! besides, with tables of its own between that and the leaf tables, which are the space's:
//!
//! ```text
//!      the space's root         CPU 0's root      CPU 1's root
//!             |                       |                 |
//!           table                   table             table
//!         /       \                   |                 |
//!     table       table             table             table
//!     /    \        |                 |               |   |
//!   leaf  leaf    leaf               leaf          leaf   leaf      (the same leaf tables; here CPU 0 has found one, CPU 1 two)
//! ```
//!
//! * **A CPU's own tables start empty.** At an address that the space maps and the CPU has not found yet it faults, and links the leaf table
//!   into its own tables ([`OwnTables::link`]). Before that it joins the table's sharers: `coherence`'s `sharers.rs` says in which order, and why nobody can
//!   miss a CPU that holds an entry.
//! * **Whoever changes entries of a leaf table names its sharers**, and tells no other CPU.
//! * **Whoever unhooks a leaf table from the space's tables unhooks it from all CPUs' own**, before the flush that comes before the table has another
//!   use or place. Linking holds the area lock shared; unhooking holds it exclusive, so that no link is made to a table that is going.
//! * **A CPU that walks the space's own tables finds everything**, and is one of the `finders`: those that ran the program when it had one thread, those
//!   that came to a large page (there is no leaf table that could be linked, and a copy of the entry would have marks of its own), and those that have
//!   linked more tables than are worth it. The last two kinds stay with the space's tables. The first change over when they next
//!   load the space, and drop everything cached then.
//! * **Memory**: a page for each CPU and thread group, and for each CPU two more and what [`MOST_LINKS`] links need at most. All of it goes with the
//!   space, when no CPU has it loaded.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use coherence::{CpuId, MAX_CPUS, Platform, Sharers, Space};

use crate::entry::Entry;
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameNumber;
use crate::mistake::{Mistake, is_made};
use crate::page_table::{Lowest, PageTable, ROOT_LEVEL, USER_ENTRIES, index};
use crate::sync::{AtomicU64, load_unhooked};

/// How many leaf tables a CPU links before it goes over to the space's own tables: 1 GiB of memory.
const MOST_LINKS: u32 = 512;

/// The upper tables of all CPUs for one address space.
pub(crate) struct OwnTables<E: Environment> {
    environment: E,
    /// By CPU.
    cpus: [Own; MAX_CPUS],
    has_any: AtomicBool,
    /// The CPUs that find every table of the space.
    finders: Sharers,
    /// Of those, the ones that stay so.
    stayers: Sharers,
}

/// What one CPU has for itself.
struct Own {
    /// The frame of its root; 0 if it has none.
    root: AtomicU32,
    links: AtomicU32,
}

/// What becomes of a fault whose page is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The CPU finds the table, or there is none to be found.
    Done,
    /// There is no link for this: the CPU is to go over to the space's own tables.
    Impossible,
}

impl<E: Environment> OwnTables<E> {
    pub(crate) fn new(environment: &E) -> Arc<Self> {
        Arc::new(Self {
            environment: environment.clone(),
            cpus: core::array::from_fn(|_| Own { root: AtomicU32::new(0), links: AtomicU32::new(0) }),
            has_any: AtomicBool::new(false),
            finders: Sharers::new(),
            stayers: Sharers::new(),
        })
    }

    /// Whether CPUs have tables of their own, so that sharers are known.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.has_any.load(Acquire)
    }

    /// The CPUs that find every table.
    pub(crate) fn finders(&self) -> &Sharers {
        &self.finders
    }

    /// Makes a root for each of these CPUs. To be called under the exclusive area lock.
    pub(crate) fn make(&self, cpus: usize) -> Result<(), OutOfMemory> {
        for own in &self.cpus[..cpus.min(MAX_CPUS)] {
            if own.root.load(Relaxed) == 0 {
                let root = PageTable::allocate_root(&self.environment)?;
                own.root.store(root.0, Release);
            }
        }
        self.has_any.store(true, Release);
        Ok(())
    }

    fn root_of(&self, cpu: CpuId) -> Option<FrameNumber> {
        // When there was no room for all, there are some; nobody uses those.
        if !self.are_there() {
            return None;
        }
        let root = self.cpus[cpu.index()].root.load(Acquire);
        (root != 0 && !self.stayers.contains(cpu)).then_some(FrameNumber(root))
    }

    /// Makes this CPU use the space. Interrupts are off.
    pub(crate) fn activate(&self, leaving: Option<&Space>, entering: &Space) {
        let coherence = self.environment.coherence();
        let me = self.environment.current_cpu();
        let Some(root) = self.root_of(me) else {
            if coherence.switches().sharers && !self.finders.contains(me) {
                coherence.join_sharers(me, &self.finders);
            }
            return coherence.activate(leaving, entering);
        };
        let found_all = self.finders.contains(me);
        let may_keep = !found_all || is_made(Mistake::FinderKeepsTranslations);
        let is_loaded = coherence.activate_at(leaving, entering, (root.address(), may_keep));
        match (found_all, is_loaded) {
            (false, _) => {}
            (true, true) => self.finders.leave(me),
            // It only borrowed the space, by the root that it had.
            (true, false) => self.go_over(entering),
        }
    }

    /// Makes this CPU, which uses the space, go over to its own root, or back to the space's. Interrupts are off.
    pub(crate) fn go_over(&self, space: &Space) {
        let coherence = self.environment.coherence();
        let me = self.environment.current_cpu();
        match self.root_of(me) {
            Some(root) => {
                coherence.load_again(space, root.address());
                self.finders.leave(me);
            }
            None => {
                coherence.join_sharers(me, &self.finders);
                coherence.load_again(space, space.root());
            }
        }
    }

    /// Lets this CPU find the leaf table of `address`, if there is one. To be called under the area lock, with interrupts off.
    pub(crate) fn link(&self, tables: &PageTable<E>, address: u64) -> Result<Link, OutOfMemory> {
        let me = self.environment.current_cpu();
        let Some(root) = self.root_of(me) else { return Ok(Link::Done) };
        let own = &self.cpus[me.index()];
        let leaf = match tables.lowest(address) {
            Lowest::Leaf(upper) if upper.is_present() => upper,
            Lowest::Large { .. } => return Ok(self.stay(me)),
            // Hardware is not to find it yet, or there is nothing.
            Lowest::Leaf(_) | Lowest::Missing(_) => return Ok(Link::Done),
        };
        let word = self.word_or_create(root, address)?;
        if Entry::from_bits(word.load(Relaxed)).is_present() {
            return Ok(Link::Done);
        }
        if own.links.fetch_add(1, Relaxed) >= MOST_LINKS {
            return Ok(self.stay(me));
        }
        let sharers = self.environment.frames().sharers(leaf.frame());
        if is_made(Mistake::LinkedBeforeJoining) {
            word.store(Entry::table(leaf.frame()).bits(), Release);
        }
        if !is_made(Mistake::LinkedWithoutJoining) {
            self.environment.coherence().join_sharers(me, sharers);
        }
        word.store(Entry::table(leaf.frame()).bits(), Release);
        Ok(Link::Done)
    }

    fn stay(&self, me: CpuId) -> Link {
        let coherence = self.environment.coherence();
        coherence.join_sharers(me, &self.stayers);
        Link::Impossible
    }

    /// The entry for the leaf table of `address` in tables below `root`, which are made if they are not there. Only the CPU whose they are makes any.
    fn word_or_create(&self, root: FrameNumber, address: u64) -> Result<&AtomicU64, OutOfMemory> {
        let frames = self.environment.frames();
        let mut table = root;
        for level in (2..=ROOT_LEVEL).rev() {
            let word = &frames.words(table)[index(address, level)];
            let mut entry = Entry::from_bits(word.load(Acquire));
            if entry.is_empty() {
                entry = Entry::table(PageTable::allocate_table(&self.environment)?);
                // Release: the table was cleared before anybody can find it here.
                word.store(entry.bits(), Release);
            }
            table = entry.frame();
        }
        Ok(&frames.words(table)[index(address, 1)])
    }

    /// Takes the leaf table of `address` out of all CPUs' own tables. To be called under the exclusive area lock, before the flush.
    pub(crate) fn unlink(&self, address: u64) {
        if !self.are_there() || is_made(Mistake::LinksLeftBehind) {
            return;
        }
        let frames = self.environment.frames();
        for own in &self.cpus {
            let root = own.root.load(Acquire);
            let table = (2..=ROOT_LEVEL).rev().try_fold(FrameNumber(root), |table, level| {
                let entry =
                    if root == 0 { 0 } else { frames.words(table)[index(address, level)].load(Acquire) };
                (entry != 0).then(|| Entry::from_bits(entry).frame())
            });
            if let Some(table) = table {
                // Hardware may set the accessed bit of the entry until now, and walk the table until the flush.
                frames.words(table)[index(address, 1)].store(0, Relaxed);
            }
        }
    }

    /// Takes out all that these upper tables link in the reach of the entry for `address` in a table of `level`.
    pub(crate) fn unlink_all(&self, address: u64, level: usize) {
        if !self.are_there() {
            return;
        }
        let span = crate::page_table::span(level);
        let start = address / span * span;
        let mut leaf = start;
        while leaf < start + span {
            self.unlink(leaf);
            leaf += crate::page_table::LEAF_SPAN;
        }
    }

    fn release_below(&self, table: FrameNumber, level: usize) {
        let frames = self.environment.frames();
        let entries = if level == ROOT_LEVEL { USER_ENTRIES } else { 512 };
        // Below level 1 are the space's leaf tables.
        if level > 1 {
            for word in &frames.words(table)[..entries] {
                let entry = Entry::from_bits(load_unhooked(word));
                if !entry.is_empty() {
                    self.release_below(entry.frame(), level - 1);
                }
            }
        }
        frames.release(self.environment.current_cpu(), table);
    }
}

impl<E: Environment> Drop for OwnTables<E> {
    /// No CPU has the space loaded any more: see [`PageTable`]'s.
    fn drop(&mut self) {
        for own in &self.cpus {
            let root = own.root.load(Relaxed);
            if root != 0 {
                self.release_below(FrameNumber(root), ROOT_LEVEL);
            }
        }
    }
}

impl<E: Environment> crate::AddressSpace<E> {
    /// Gives each of `cpus` CPUs upper tables of its own, and this one, which uses the space, at once; unless the mechanism `sharers` is off. For a
    /// program that gets a second thread.
    ///
    /// # Errors
    /// When there are no frames for them. Then nothing has changed that matters.
    pub fn part(&self, cpus: usize) -> Result<(), OutOfMemory> {
        let coherence = self.environment.coherence();
        if !coherence.switches().sharers || self.own_tables.are_there() {
            return Ok(());
        }
        let _layout = self.exclusive();
        self.own_tables.make(cpus)?;
        coherence.platform().without_interrupts(|| self.own_tables.go_over(self.space()));
        Ok(())
    }

    /// Makes this CPU use the space: as [`Coherence::activate`](coherence::Coherence::activate), whose rules hold, with the root that is this CPU's.
    pub fn activate(&self, leaving: Option<&Space>) {
        self.own_tables.activate(leaving, self.space());
    }

    /// Whether this is a root that CPUs load for the space.
    pub fn is_loaded_by(&self, root: u64) -> bool {
        let is_own = |own: &Own| FrameNumber(own.root.load(Relaxed)).address() == root;
        self.space().root() == root || (root != 0 && self.own_tables.cpus.iter().any(is_own))
    }

    /// Lets this CPU find what is mapped at `page`.
    pub(crate) fn link(&self, page: u64) -> Result<(), OutOfMemory> {
        if !self.own_tables.are_there() {
            return Ok(());
        }
        let layout = self.shared();
        self.environment.coherence().platform().without_interrupts(|| {
            if self.own_tables.link(&layout.tables, page)? == Link::Impossible {
                self.own_tables.go_over(self.space());
            }
            Ok(())
        })
    }
}
