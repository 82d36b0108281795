//! A small kernel's memory operations on the simulated machine, written as a port would write them.
//!
//! Each tells the oracle what it promises: to the next owner of a frame or table, and to the program when it returns.

use coherence::{Batch, Cause, Decision, Flush, Gather, Translation};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use crate::machine::{Entry, Hardware, PAGE, PAGES_PER_TABLE, World, current};

/// What was unhooked by an operation.
#[derive(Default)]
struct Unhooked {
    frames: Vec<usize>,
    tables: Vec<usize>,
}

fn translation(entry: Option<Entry>) -> Translation {
    let Some(entry) = entry else {
        return Translation::default();
    };
    Translation {
        present: true,
        frame: entry.frame as u64,
        writable: entry.writable,
        user: true,
        accessed: true,
        dirty: true,
        ..Translation::default()
    }
}

fn address(page: usize) -> u64 {
    page as u64 * PAGE
}

/// User code of `space` touches a page, with as many faults as it takes.
pub(crate) fn touch(world: &World, space: usize, page: usize, write: bool) {
    while !world.hardware().access(page, write) {
        world.hardware().faulted(page);
        fault(world, space, page, write);
        world.window();
    }
    world.window();
}

/// Handles a fault: a new frame for a page that is not there, permission to write, or nothing if it was spurious.
fn fault(world: &World, space: usize, page: usize, write: bool) {
    let hardware = world.hardware();
    world.locked(space, |tables| {
        let upper = &tables.upper[page / PAGES_PER_TABLE];
        if upper.load(SeqCst) == 0 {
            upper.store(hardware.new_table(), SeqCst);
        }
        let table = hardware.table(upper.load(SeqCst));
        let slot = &table.entries[page % PAGES_PER_TABLE];
        match Entry::from_bits(slot.load(SeqCst)) {
            None => {
                let frame = hardware.new_frame(space, page);
                slot.store(Entry { frame, writable: true }.bits(), SeqCst);
            }
            Some(entry) if write && !entry.writable => {
                // The program may write again from here on: a promotion, which nobody is told of.
                let mut frames = hardware.frames();
                frames[entry.frame].protected = false;
                frames[entry.frame].changes += 1;
                drop(frames);
                let new = Entry { writable: true, ..entry };
                let mut gather =
                    world.coherence.gather_under_lock(&world.spaces[space], Cause::CopyOnWrite, ());
                slot.store(new.bits(), SeqCst);
                gather.change(address(page), PAGE, &translation(Some(entry)), &translation(Some(new)));
                gather.finish().into_inner();
            }
            Some(_) => world.coherence.spurious_fault(),
        }
    });
}

type SomeGather<'a> = Gather<'a, Hardware, Unhooked>;

/// Drops pages, and the tables that become empty. When it returns, the program may rely on it.
pub(crate) fn unmap(world: &World, space: usize, pages: std::ops::Range<usize>) {
    let hardware = world.hardware();
    let mut gather = world.coherence.gather(&world.spaces[space], Cause::Munmap, Unhooked::default());
    if pages.len() > 1 {
        // Some name what they are about; the others are about everything.
        gather = gather.about(Flush::range(address(pages.start), address(pages.end), PAGE));
    }
    let mut former = Vec::new();
    world.locked(space, |tables| {
        gather.settle();
        for page in pages.clone() {
            let upper = &tables.upper[page / PAGES_PER_TABLE];
            if upper.load(SeqCst) != 0 {
                unhook(world, &mut gather, upper.load(SeqCst), page);
                unhook_table_if_empty(world, &mut gather, upper, page);
            }
            former.extend(hardware.formerly_at(space, page));
        }
    });
    world.window();
    let unhooked = gather.finish().into_inner();
    // The promise to the program, whoever took the frames out; and the promise to the next owners.
    hardware.must_be_gone(&former);
    hardware.must_be_gone(&unhooked.frames);
    unhooked.tables.into_iter().for_each(|table| hardware.free_table(table));
}

fn unhook(world: &World, gather: &mut SomeGather<'_>, table: usize, page: usize) {
    let table = world.hardware().table(table);
    let old = Entry::from_bits(table.entries[page % PAGES_PER_TABLE].swap(0, SeqCst));
    if let Some(old) = old {
        world.hardware().unhooked(old.frame);
        gather.list_mut().frames.push(old.frame);
    }
    gather.change(address(page), PAGE, &translation(old), &translation(None));
}

fn unhook_table_if_empty(world: &World, gather: &mut SomeGather<'_>, upper: &AtomicUsize, page: usize) {
    let table = world.hardware().table(upper.load(SeqCst));
    if table.entries.iter().all(|entry| entry.load(SeqCst) == 0) {
        let number = upper.swap(0, SeqCst);
        gather.list_mut().tables.push(number);
        let first = page / PAGES_PER_TABLE * PAGES_PER_TABLE;
        gather.table_freed(address(first), PAGES_PER_TABLE as u64 * PAGE);
    }
}

/// Takes the right to write away from a page. When it returns, the program may rely on it.
pub(crate) fn protect(world: &World, space: usize, page: usize) {
    let hardware = world.hardware();
    let mut gather = world.coherence.gather(&world.spaces[space], Cause::Mprotect, ());
    let mut protected = None;
    world.locked(space, |tables| {
        gather.settle();
        let number = tables.upper[page / PAGES_PER_TABLE].load(SeqCst);
        if number == 0 {
            return;
        }
        let table = hardware.table(number);
        let slot = &table.entries[page % PAGES_PER_TABLE];
        if let Some(old) = Entry::from_bits(slot.load(SeqCst)) {
            let new = Entry { writable: false, ..old };
            slot.store(new.bits(), SeqCst);
            gather.change(address(page), PAGE, &translation(Some(old)), &translation(Some(new)));
            protected = Some((old.frame, hardware.frames()[old.frame].changes));
        }
    });
    gather.finish().into_inner();
    if let Some((frame, changes)) = protected {
        let frame = &mut hardware.frames()[frame];
        // Unless the program was given the right again meanwhile.
        frame.protected = frame.changes == changes;
    }
}

/// Replaces a page's frame by another: the new one is there only after the old one is unreachable. Flushes under the lock.
pub(crate) fn replace(world: &World, space: usize, page: usize) {
    let hardware = world.hardware();
    world.locked(space, |tables| {
        let number = tables.upper[page / PAGES_PER_TABLE].load(SeqCst);
        if number == 0 {
            return;
        }
        let list = Unhooked::default();
        let mut gather = world.coherence.gather_under_lock(&world.spaces[space], Cause::CopyOnWrite, list);
        unhook(world, &mut gather, number, page);
        let unhooked = gather.flush().into_inner();
        hardware.must_be_gone(&unhooked.frames);
        let frame = hardware.new_frame(space, page);
        let entry = Entry { frame, writable: current().is_multiple_of(2) };
        hardware.table(number).entries[page % PAGES_PER_TABLE].store(entry.bits(), SeqCst);
        gather.finish().into_inner();
    });
}

type SomeBatch<'a> = Batch<'a, Hardware, Unhooked>;

/// The slot of a page, and what is in it, under the space's lock.
fn with_slot(world: &World, space: usize, page: usize, work: impl FnOnce(&AtomicU64, Option<Entry>)) {
    world.locked(space, |tables| {
        let number = tables.upper[page / PAGES_PER_TABLE].load(SeqCst);
        if number != 0 {
            let table = world.hardware().table(number);
            let slot = &table.entries[page % PAGES_PER_TABLE];
            work(slot, Entry::from_bits(slot.load(SeqCst)));
        }
    });
}

/// Takes a page out of every space, as an agent does that finds it by the reverse way: one flush for all of them. Whatever has been there
/// counts as unmapped then, also what others have taken out.
pub(crate) fn take_back(world: &World, page: usize) {
    let hardware = world.hardware();
    let mut batch: SomeBatch<'_> = world.coherence.batch(Cause::Reclaim, Unhooked::default());
    // Every other one lets its flush wait, if it may, and says nothing of what others have taken out.
    let is_deferring = thread_rng().r#gen();
    batch = if is_deferring { batch.deferring() } else { batch.concluding_absence() };
    let mut former = Vec::new();
    for (space, known) in world.spaces.iter().enumerate() {
        with_slot(world, space, page, |slot, old| {
            let Some(old) = old else { return };
            slot.store(0, SeqCst);
            hardware.unhooked(old.frame);
            batch.list_mut().frames.push(old.frame);
            // What cannot be stored to is clean, and may wait.
            let seen = Translation { dirty: old.writable, ..translation(Some(old)) };
            let _ = batch.change(known, address(page), PAGE, &seen, &translation(None));
        });
        world.locked(space, |_| {
            let _ = batch.meet(known);
            if !is_deferring {
                former.extend(hardware.formerly_at(space, page));
            }
        });
        world.window();
    }
    let unhooked = match batch.defer() {
        Ok(deferred) => {
            (0..4).for_each(|_| world.window());
            world.coherence.retire(deferred, Cause::Reclaim).into_inner()
        }
        Err(flushed) => flushed.into_inner(),
    };
    hardware.must_be_gone(&former);
    hardware.must_be_gone(&unhooked.frames);
}

/// Takes the right to write from a page in every space, to read what it holds after one flush.
pub(crate) fn write_out(world: &World, page: usize) {
    let hardware = world.hardware();
    let mut batch: SomeBatch<'_> = world.coherence.batch(Cause::Writeback, Unhooked::default());
    let mut protected = Vec::new();
    for (space, known) in world.spaces.iter().enumerate() {
        with_slot(world, space, page, |slot, old| {
            let Some(old) = old else { return };
            let new = Entry { writable: false, ..old };
            slot.store(new.bits(), SeqCst);
            let _ =
                batch.change(known, address(page), PAGE, &translation(Some(old)), &translation(Some(new)));
            let _ = batch.meet(known);
            protected.push((old.frame, hardware.frames()[old.frame].changes));
        });
        world.window();
    }
    batch.finish().into_inner();
    for (frame, changes) in protected {
        let frame = &mut hardware.frames()[frame];
        frame.protected |= frame.changes == changes;
    }
}
