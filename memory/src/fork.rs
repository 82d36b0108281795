//! Copying an address space: `fork`.
//!
//! Only what the child could not find again by itself is copied: the private pages of private areas. Pages of objects
//! and the page of zeroes come back by a fault. Of a page that is in a slot the entry is copied, which then has one owner more. A private page is shared until one of the two writes to it: both get
//! an entry that is not writable, and the frame one more reference. The parent's entries lose their write permission,
//! so there is one flush, which is over before `fork` returns: after that no CPU can store to a frame that is shared
//! (`copy_on_write` relies on it).
//!
//! As those entries are flushed anyway, they lose the mark of being used as well: who stores to such a page first, before anybody has
//! read it since, need tell nobody of the copy that takes its place (`coherence::policy`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags};
use crate::changes::Changes;
use crate::entry::Bits;
use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::mistake::{Mistake, is_made};
use crate::monitor::{Event, Monitor, Wishes};
use crate::page_table::Mapping;

/// Monitors for the child's areas whose parents' want to watch them, by the numbers of those. Each is told of its own.
fn inherit_monitors<E: Environment>(
    layout: &mut Layout<E>,
    child: &Arc<AddressSpace<E>>,
) -> Vec<(u32, Arc<E::Monitor>)> {
    if layout.monitors.is_empty() {
        return Vec::new();
    }
    let mut inherited: Vec<(u32, Arc<E::Monitor>)> = Vec::new();
    let mut told = Vec::new();
    for area in layout.areas.iter().filter(|area| !area.has_flag(AreaFlags::NOT_FORKED)) {
        let Some(monitor) = layout.monitors.of(area) else { continue };
        let is_known = inherited.iter().any(|(number, _)| *number == area.watcher());
        if monitor.wishes().contains(Wishes::FORK) && !is_known {
            let for_child = monitor.for_child(&Arc::downgrade(child));
            inherited.push((area.watcher(), for_child.clone()));
            told.push((monitor.clone(), for_child));
        }
    }
    if !inherited.is_empty() {
        child.has_monitors.store(true, Relaxed);
    }
    for (monitor, for_child) in told {
        layout.announce(&monitor, Event::Fork(for_child));
    }
    inherited
}

impl<E: Environment> AddressSpace<E> {
    /// A copy of this address space, as a forked child gets it.
    ///
    /// # Errors
    /// When the child's tables do not fit in memory. The parent then goes on as before (some of its pages will take
    /// a fault to become writable again).
    pub fn fork(&self) -> Result<Arc<Self>, OutOfMemory> {
        let child = Self::with_limits(&self.environment, self.limits.copy())?;
        let mut layout = self.exclusive();
        let mut changes = self.changes(Cause::Fork);
        let inherited = inherit_monitors(&mut layout, &child);
        let copied = self.copy_into(&child, &layout, &inherited, &mut changes);
        if is_made(Mistake::ForkFlushedAfterUnlock) {
            drop(layout);
        }
        // Under the exclusive area lock: no fault may make a page writable again before this flush is over.
        changes.finish();
        copied.map(|()| child)
    }

    fn copy_into(
        &self,
        child: &Self,
        layout: &Layout<E>,
        monitors: &[(u32, Arc<E::Monitor>)],
        changes: &mut Changes<'_, E>,
    ) -> Result<(), OutOfMemory> {
        let mut copy = child.exclusive();
        copy.heap = layout.heap;
        for area in layout.areas.iter().filter(|area| !area.has_flag(AreaFlags::NOT_FORKED)) {
            let inherited = area.with_range(area.range());
            inherited.set_flags(area.flags() - AreaFlags::LOCKS);
            if area.is_watched() {
                match monitors.iter().find(|(number, _)| *number == area.watcher()) {
                    Some((_, monitor)) => inherited.set_watcher(copy.monitors.enter(monitor)),
                    None => inherited.clear_watch(),
                }
            }
            let stays_guarded = inherited.has_flag(AreaFlags::WATCHED_STORES);
            copy.areas.push(inherited);
            let is_needed = !area.is_shared() && (area.has_private_pages() || stays_guarded);
            if is_needed && !area.has_flag(AreaFlags::WIPED_ON_FORK) {
                self.copy_pages(child, (layout, &copy), area, stays_guarded, changes)?;
            }
            if stays_guarded && area.backing().is_some() {
                copy_guards(layout, &copy, area)?;
            }
        }
        Ok(())
    }

    fn copy_pages(
        &self,
        child: &Self,
        (layout, copy): (&Layout<E>, &Layout<E>),
        area: &Area<E>,
        stays_guarded: bool,
        changes: &mut Changes<'_, E>,
    ) -> Result<(), OutOfMemory> {
        let frames = self.environment.frames();
        layout.tables.try_for_each(area.range(), |mapping, part| {
            let leaf = match mapping {
                Mapping::Leaf(leaf) => leaf,
                Mapping::Large(large) => {
                    self.share_large(&copy.tables, large, part.start(), changes)?;
                    child.note_resident(part.pages());
                    return Ok(());
                }
            };
            changes.settle();
            if leaf.is_empty() {
                return Ok(());
            }
            let target = copy.tables.leaf_or_create(part.start())?;
            debug_assert!(target.is_some(), "a large page where the parent has none");
            let Some(mut target) = target else { return Ok(()) };
            let mut copied = 0;
            let mut swapped = 0;
            for (address, seen) in leaf.used_entries(part) {
                if let Some(slot) = seen.slot() {
                    // Counted under both tables' locks: nobody has given up the slot that the parent's entry owns.
                    self.environment.swap().share(&self.environment, slot);
                    target.replace(address, if stays_guarded { seen } else { seen.without(Bits::GUARDED) });
                    swapped += 1;
                }
                if !seen.holds_page() {
                    continue;
                }
                if self.is_zero_frame(seen.frame()) {
                    if stays_guarded && seen.has(Bits::GUARDED) {
                        target.replace(address, seen);
                    }
                    continue;
                }
                let mut shared = seen;
                if seen.has(Bits::WRITABLE)
                    && let Some((old, new)) = leaf.update(address, |old| Some(old.to_be_shared()))
                {
                    changes.changed(leaf, address, old, new);
                    shared = new;
                } else if is_made(Mistake::SharedAsUnused) {
                    leaf.update(address, |old| Some(old.unused()));
                }
                frames.acquire(shared.frame());
                if !stays_guarded {
                    shared = shared.without(Bits::GUARDED);
                }
                // No flush for the child: its entry was empty, and it has never run.
                target.replace(address, shared.unused());
                copied += 1;
            }
            child.note_resident(copied);
            child.note_swapped(swapped);
            Ok(())
        })
    }
}

/// Guards in a child, where an area stays watched, the pages that are guarded here and that it has not got: they come by a fault.
fn copy_guards<E: Environment>(
    layout: &Layout<E>,
    copy: &Layout<E>,
    area: &Area<E>,
) -> Result<(), OutOfMemory> {
    layout.tables.try_for_each(area.range(), |mapping, part| {
        let Mapping::Leaf(leaf) = mapping else { return Ok(()) };
        let mut guarded = leaf.used_entries(part).filter(|(_, entry)| entry.has(Bits::GUARDED)).peekable();
        if guarded.peek().is_none() {
            return Ok(());
        }
        let Some(mut target) = copy.tables.leaf_or_create(part.start())? else { return Ok(()) };
        for (address, _) in guarded {
            if target.entry(address).is_empty() {
                target.guard_absent(address);
            }
        }
        Ok(())
    })
}
