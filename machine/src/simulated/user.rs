//! What programs and schedulers do on this machine: accesses through the caches, system calls, switches.

use std::sync::Arc;

use coherence::{Cause, Mode, Row};
use explorer::Step;
use memory::{
    Access, AddressSpace, Advice, AreaFlags, Environment, Error, Fault, MapRequest, MoveTo, PAGE_SIZE,
    PageRange, Place, RemapRequest, Rights,
};

use super::caches::{DIRTY, PRESENT, USER, WRITABLE};
use super::machine::{Hidden, SimulatedEnvironment, SimulatedSpace};
use super::operation::{Operation, Promise};
use super::oracle::Use;
use super::small_kernel;
use super::walker::Walk;

/// An access that faults more often than this will for ever.
const MOST_FAULTS: usize = 16;

/// What one attempt at an access came to.
enum Attempt {
    /// It was made; a load found this.
    Made(u64),
    /// A fault. Whether the entry was present.
    Faulted(bool),
}

/// Both rights of ordinary memory.
pub(super) const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);

/// The pages from this one on.
pub(super) fn pages(first: u64, count: u64) -> PageRange {
    PageRange::new(first, count * PAGE_SIZE).expect("a scenario's pages are in user space")
}

impl SimulatedEnvironment {
    /// An empty address space; says its number.
    pub(super) fn new_space(&self) -> usize {
        let space = AddressSpace::new(self).expect("there is memory for a root");
        self.adopt(space)
    }

    /// Gives a space a number.
    pub(super) fn adopt(&self, space: Arc<SimulatedSpace>) -> usize {
        let mut hidden = self.0.hidden();
        hidden.spaces.push(space);
        hidden.spaces.len() - 1
    }

    /// The space of that number ends for `coherence`: no CPU has it loaded, and none ever will.
    pub(super) fn end_space(&self, number: usize) {
        self.0.coherence.end_space(self.space(number).space());
    }

    /// The space of that number.
    pub(super) fn space(&self, number: usize) -> Arc<SimulatedSpace> {
        self.0.hidden().spaces[number].clone()
    }

    /// Whether this CPU has a space loaded.
    pub(super) fn has_loaded(&self) -> bool {
        self.0.hidden().loaded[explorer::current_cpu()].is_some()
    }

    /// What this CPU runs in.
    pub(super) fn loaded(&self) -> Arc<SimulatedSpace> {
        let cpu = explorer::current_cpu();
        self.0.hidden().loaded[cpu].clone().expect("a program runs in a space")
    }

    /// This CPU goes to run user code of a space.
    pub(super) fn activate(&self, number: usize) {
        let cpu = explorer::current_cpu();
        let entering = self.space(number);
        let leaving = self.0.hidden().loaded[cpu].clone();
        self.leave_user();
        self.abandon_sequence();
        let was_masked = explorer::mask(true);
        entering.activate(leaving.as_ref().map(|space| space.space()));
        {
            let mut hidden = self.0.hidden();
            (hidden.loaded[cpu], hidden.modes[cpu]) = (Some(entering), Mode::User);
        }
        explorer::mask(was_masked);
        self.enter_user();
    }

    /// A kernel thread takes this CPU, which only borrows its space from now on.
    pub(super) fn go_lazy(&self) {
        let loaded = self.loaded();
        self.leave_user();
        self.abandon_sequence();
        let was_masked = explorer::mask(true);
        self.0.coherence.go_lazy(loaded.space());
        self.0.hidden().modes[explorer::current_cpu()] = Mode::Kernel;
        explorer::mask(was_masked);
    }

    /// This CPU lets go of its space.
    pub(super) fn leave(&self) {
        let cpu = explorer::current_cpu();
        let loaded = self.0.hidden().loaded[cpu].clone();
        self.leave_user();
        self.abandon_sequence();
        let was_masked = explorer::mask(true);
        if let Some(loaded) = loaded {
            self.0.coherence.leave(loaded.space());
        }
        {
            let mut hidden = self.0.hidden();
            (hidden.loaded[cpu], hidden.modes[cpu]) = (None, Mode::Idle);
        }
        explorer::mask(was_masked);
    }

    /// A load by the program on this CPU: what it finds, or the fault that would kill it.
    pub(super) fn load(&self, address: u64) -> Result<u64, Fault> {
        self.access(address, None)
    }

    /// A store by the program on this CPU.
    pub(super) fn store(&self, address: u64, value: u64) -> Result<(), Fault> {
        self.access(address, Some(value)).map(|_| ())
    }

    fn access(&self, address: u64, stored: Option<u64>) -> Result<u64, Fault> {
        for _ in 0..MOST_FAULTS {
            explorer::step(Step::Machine { number: address, stores: stored.is_some() });
            let page = address & !(PAGE_SIZE - 1);
            match self.attempt(address, stored) {
                Attempt::Made(value) => return Ok(value),
                Attempt::Faulted(present) => {
                    explorer::narrate(|| format!("faults at {address:#x}"));
                    let access = if stored.is_some() { Access::WRITE } else { Access::READ };
                    let space = self.loaded();
                    self.call("a page fault", &space, pages(page, 1), Promise::Agreement, || {
                        if small_kernel::PART.contains(&address) {
                            self.small_fault(address);
                            return Ok(());
                        }
                        space.handle_fault(address, access, present)
                    })?;
                }
            }
        }
        explorer::fail(format!("an access to {address:#x} faults for ever"));
        Err(Fault::NotAllowed)
    }

    /// A store of the program's, whose step has been taken, to a page that is mapped.
    pub(super) fn store_in_this_step(&self, address: u64, value: u64) {
        if let Attempt::Faulted(_) = self.attempt(address, Some(value)) {
            explorer::fail(format!("a store to {address:#x} faults, where a scenario cannot do with that"));
        }
    }

    /// One attempt to load, by somebody who handles no faults.
    pub(super) fn peek_at(&self, address: u64) {
        self.attempt(address, None);
    }

    /// One attempt, in one step: no interrupt comes between the translation and the access.
    fn attempt(&self, address: u64, stored: Option<u64>) -> Attempt {
        let (cpu, page, write) = (explorer::current_cpu(), address & !(PAGE_SIZE - 1), stored.is_some());
        let physical = match self.translate(Use { cpu, page, write }) {
            Ok(frame) => frame + address % PAGE_SIZE,
            Err(present) => {
                // A fault serialises, and drops the translation of its address and the upper levels.
                explorer::serialise();
                self.0.hidden().caches[cpu].drop_page(page);
                explorer::observe(u64::from(present));
                return Attempt::Faulted(present);
            }
        };
        let Some(value) = stored else {
            let value = explorer::load_now(self.0.word(physical));
            {
                let mut hidden = self.0.hidden();
                let root = hidden.caches[cpu].root;
                hidden.order.loads(cpu, root, physical);
            }
            explorer::narrate(|| format!("loads  {address:#x} -> {value}"));
            return Attempt::Made(value);
        };
        {
            let mut hidden = self.0.hidden();
            let root = hidden.caches[cpu].root;
            hidden.oracle.store_waits(cpu, page, physical & !(PAGE_SIZE - 1));
            hidden.order.stores(cpu, root, address, physical);
        }
        let is_visible = explorer::store_now(self.0.word(physical), value, 1);
        explorer::narrate(|| {
            let waits = if is_visible { "" } else { ", which waits in its buffer" };
            format!("stores {address:#x} <- {value}{waits}")
        });
        Attempt::Made(value)
    }

    /// The frame that an access of a program reaches, or whether the entry that forbids it was present.
    fn translate(&self, access: Use) -> Result<u64, bool> {
        let Use { cpu, page, write } = access;
        let machine = &self.0;
        let mut guard = machine.hidden();
        let hidden: &mut Hidden = &mut guard;
        if hidden.caches[cpu].root == 0 {
            hidden.found(format!("CPU {cpu} runs a program with the kernel's root loaded"));
            return Err(false);
        }
        if hidden.caches[cpu].translation(page).is_none()
            && machine.walk(hidden, cpu, page, write) == Walk::Missing
        {
            return Err(false);
        }
        let entry = hidden.caches[cpu].translation(page).map_or(0, |translation| translation.entry);
        if entry & (PRESENT | USER) != PRESENT | USER || (write && entry & WRITABLE == 0) {
            return Err(true);
        }
        if write && entry & DIRTY == 0 && !machine.set_dirty(hidden, cpu, page) {
            return Err(true);
        }
        let Hidden { caches, oracle, .. } = hidden;
        let translation = caches[cpu].translation(page).expect("it was cached above").clone();
        if translation.root != caches[cpu].root {
            // Never to be seen by this program: the tag was another space's.
            let frame = translation.frame() >> 12;
            guard.found(format!(
                "D1, frame safety: CPU {cpu} reaches frame {frame:x} at {page:#x} through a cached entry of another space"
            ));
            return Err(true);
        }
        let now = machine.entry_in_memory(translation.root, page);
        if let Some(sentence) = oracle.judge(access, &translation, now) {
            guard.found(sentence);
        }
        Ok(translation.frame())
    }

    /// Makes a call with a promise.
    pub(super) fn call<R>(
        &self,
        name: &'static str,
        space: &SimulatedSpace,
        range: PageRange,
        promise: Promise,
        work: impl FnOnce() -> R,
    ) -> R {
        let root = space.space().root();
        self.system_call(|| {
            let id = {
                let mut hidden = self.0.hidden();
                let Hidden { oracle, caches, .. } = &mut *hidden;
                let operation = |id| Operation { id, name, root, range, promise };
                oracle.begin(explorer::current_cpu(), operation, caches)
            };
            explorer::narrate(|| format!("calls  {name} ({:#x} to {:#x})", range.start(), range.end()));
            let result = work();
            self.0.end_operation(id);
            explorer::narrate(|| format!("{name} returns"));
            result
        })
    }

    /// Maps zeroes at these pages.
    pub(super) fn map(&self, range: PageRange) {
        let space = self.loaded();
        let request = MapRequest {
            place: Place::Fixed(range.start()),
            length: range.length(),
            rights: READ_WRITE,
            may: Rights::all(),
            // A scenario may map more than there is memory for, as long as it uses little of it.
            flags: AreaFlags::NO_RESERVE,
            object: None,
            populate: false,
        };
        let mapped = self.call("mmap", &space, range, Promise::Removal, || space.map(request));
        mapped.expect("a scenario maps what can be mapped");
    }

    /// The program gets a second thread: each of so many CPUs has upper tables of its own from now on.
    pub(super) fn part(&self, cpus: usize) {
        let space = self.loaded();
        self.system_call(|| space.part(cpus)).expect("a scenario has room for that");
    }

    /// `munmap`.
    pub(super) fn unmap(&self, range: PageRange) {
        let space = self.loaded();
        let unmapped = self.call("munmap", &space, range, Promise::Removal, || space.unmap(range));
        unmapped.expect("a scenario unmaps what can be unmapped");
    }

    /// `madvise(MADV_DONTNEED)`.
    pub(super) fn drop_pages(&self, range: PageRange) {
        let space = self.loaded();
        let advise = || space.advise(range, Advice::DontNeed);
        let dropped = self.call("madvise(MADV_DONTNEED)", &space, range, Promise::Removal, advise);
        dropped.expect("a scenario drops what can be dropped");
    }

    /// `madvise(MADV_REMOVE)`.
    pub(super) fn remove(&self, range: PageRange) {
        let space = self.loaded();
        let advise = || space.advise(range, Advice::Remove);
        let removed = self.call("madvise(MADV_REMOVE)", &space, range, Promise::Removal, advise);
        removed.expect("a scenario punches holes where it may");
    }

    /// `madvise(MADV_COLLAPSE)`.
    pub(super) fn collapse(&self, range: PageRange) {
        let space = self.loaded();
        let advise = || space.advise(range, Advice::Collapse);
        let collapsed = self.call("madvise(MADV_COLLAPSE)", &space, range, Promise::Agreement, advise);
        collapsed.expect("a scenario collapses what can be collapsed");
    }

    /// A program drops a page of another one's space (`process_madvise`).
    pub(super) fn drop_pages_of(&self, number: usize, range: PageRange) {
        let space = self.space(number);
        let dropped = self.call("process_madvise", &space, range, Promise::Removal, || {
            space.advise(range, Advice::DontNeed)
        });
        dropped.expect("a scenario drops what can be dropped");
    }

    /// `mprotect`.
    pub(super) fn protect(&self, range: PageRange, rights: Rights) {
        let space = self.loaded();
        let promise = match rights {
            rights if rights.is_empty() => Promise::Removal,
            rights if rights.contains(Rights::WRITE) => Promise::Agreement,
            _ => Promise::Protection,
        };
        let protected = self.call("mprotect", &space, range, promise, || space.protect(range, rights, false));
        protected.expect("a scenario protects what can be protected");
    }

    /// `mremap` to a fixed place.
    pub(super) fn relocate(&self, from: PageRange, to: u64) {
        let moved = self.remap(from, to, Promise::Removal);
        moved.expect("a scenario moves what can be moved");
    }

    /// `mremap` to a fixed place, for which there is too little memory. It promises that all is as it was.
    pub(super) fn fail_to_relocate(&self, from: PageRange, to: u64) {
        let moved = self.remap(from, to, Promise::Agreement);
        assert_eq!(moved, Err(Error::OutOfMemory), "a scenario has too little memory for a move");
    }

    fn remap(&self, from: PageRange, to: u64, promise: Promise) -> Result<u64, Error> {
        let space = self.loaded();
        let request = RemapRequest {
            address: from.start(),
            old_length: from.length(),
            new_length: from.length(),
            may_move: true,
            to: MoveTo::Fixed(to),
            keep_source: false,
        };
        self.call("mremap", &space, from, promise, || space.remap(request))
    }

    /// Leaves this CPU so many free frames.
    pub(super) fn leave_frames(&self, count: usize) {
        let cpu = self.current_cpu();
        let mut kept: Vec<_> = std::iter::from_fn(|| self.frames().allocate(cpu).ok()).collect();
        for frame in kept.drain(..count) {
            self.frames().release(cpu, frame);
        }
        self.0.hidden().kept = kept;
    }

    /// `fork`: the child's number.
    pub(super) fn fork(&self, range: PageRange) -> usize {
        let space = self.loaded();
        let child = self.call("fork", &space, range, Promise::Protection, || space.fork());
        self.adopt(child.expect("there is memory for a child"))
    }

    /// The end of a run: all CPUs let go, all spaces end, and every frame must be free. Barriers have interrupted nobody more
    /// often than they would have one after the other.
    pub(super) fn finish(&self) -> Result<(), String> {
        let sent = self.0.coherence.ledger().total(Row::Sent(Cause::Membarrier));
        let most = self.0.hidden().order.calls() * (self.0.build.cpus as u64 - 1);
        if sent > most {
            return Err(format!(
                "barriers sent {sent} interrupts, where one after the other had sent {most}"
            ));
        }
        for cpu in 0..self.0.build.cpus {
            explorer::as_cpu(cpu, || self.leave());
        }
        explorer::as_cpu(0, || self.detach_last_device());
        self.check_objects()?;
        explorer::as_cpu(0, || self.release_waiting());
        let spaces = std::mem::take(&mut self.0.hidden().spaces);
        let kept = spaces
            .iter()
            .find(|space| !space.space().active().is_empty() || !space.space().lazy().is_empty());
        if let Some(kept) = kept {
            let (active, lazy) = (kept.space().active(), kept.space().lazy());
            let sentence = format!("CPUs {active:?} and {lazy:?} are in the sets of a space that they left");
            // A space may not end so.
            std::mem::forget(spaces);
            return Err(sentence);
        }
        spaces.iter().for_each(|space| self.end_small_part(space.space().root()));
        drop(spaces);
        let kept = std::mem::take(&mut self.0.hidden().kept);
        kept.into_iter().for_each(|frame| self.frames().release(self.current_cpu(), frame));
        self.forget_objects();
        self.check_swap()?;
        let (free, before) = (self.frames().statistics().free, self.0.hidden().free);
        if free == before {
            Ok(())
        } else {
            Err(format!("{free} frames are free in the end, {before} were before"))
        }
    }
}
