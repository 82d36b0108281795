//! Changes of the areas that monitors are told of: noted under the exclusive area lock, told when it has been released.
//!
//! They are told where the lock's guard is dropped ([`Exclusive`]), so that no operation can forget to. Telling waits until a monitor has
//! heard, as Linux does: what the program does next cannot be heard before it. From when a change is noted until it has been heard, the monitor's
//! attempts to fill pages in are refused ([`Monitor::is_changing`]): they may be meant for what was there before.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use lock_api::RwLockWriteGuard;

use crate::address_space::Layout;
use crate::environment::Environment;
use crate::monitor::{Event, Monitor, Wishes};
use crate::range::PageRange;

/// What is to be told when the area lock is released, in this order.
pub(crate) struct Announcements<E: Environment>(Vec<Announcement<E>>);

type Announcement<E> = (Arc<<E as Environment>::Monitor>, Event<<E as Environment>::Monitor>);

impl<E: Environment> Announcements<E> {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Takes note of a change.
    pub(crate) fn note(&mut self, monitor: &Arc<E::Monitor>, event: Event<E::Monitor>) {
        monitor.change_begins();
        self.0.push((monitor.clone(), event));
    }

    /// Tells. To be called without locks.
    pub(crate) fn tell(self) {
        for (monitor, event) in self.0 {
            monitor.tell(event);
        }
    }
}

/// The area lock, held exclusively.
pub(crate) struct Exclusive<'a, E: Environment> {
    /// Dropped first.
    layout: RwLockWriteGuard<'a, E::AreaLock, Layout<E>>,
    /// Dropped second, and told by that.
    told: Told<E>,
}

struct Told<E: Environment>(Option<Box<Announcements<E>>>);

impl<'a, E: Environment> Exclusive<'a, E> {
    pub(crate) fn new(layout: RwLockWriteGuard<'a, E::AreaLock, Layout<E>>) -> Self {
        Self { layout, told: Told(None) }
    }
}

impl<E: Environment> Deref for Exclusive<'_, E> {
    type Target = Layout<E>;

    fn deref(&self) -> &Layout<E> {
        &self.layout
    }
}

impl<E: Environment> DerefMut for Exclusive<'_, E> {
    fn deref_mut(&mut self) -> &mut Layout<E> {
        &mut self.layout
    }
}

impl<E: Environment> Drop for Exclusive<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.told.0 = self.layout.announcements.take();
    }
}

impl<E: Environment> Drop for Told<E> {
    #[inline]
    fn drop(&mut self) {
        if let Some(announcements) = self.0.take() {
            announcements.tell();
        }
    }
}

impl<E: Environment> Layout<E> {
    /// Takes note of a change that is told when the lock is released.
    pub(crate) fn announce(&mut self, monitor: &Arc<E::Monitor>, event: Event<E::Monitor>) {
        self.announcements.get_or_insert_with(|| Box::new(Announcements::NONE)).note(monitor, event);
    }

    /// The areas in this range are about to be removed: whoever waits there looks again, and monitors that want to are told.
    pub(crate) fn announce_unmap(&mut self, range: PageRange) {
        if self.monitors.is_empty() {
            return;
        }
        let mut told: Vec<(u32, Arc<E::Monitor>)> = Vec::new();
        for area in self.areas.overlapping(range) {
            let Some(monitor) = self.monitors.of(area) else { continue };
            if let Some(part) = area.range().intersection(&range) {
                monitor.wake(part);
            }
            let is_known = told.iter().any(|(number, _)| *number == area.watcher());
            if monitor.wishes().contains(Wishes::UNMAP) && !is_known {
                told.push((area.watcher(), monitor.clone()));
            }
        }
        for (_, monitor) in told {
            self.announce(&monitor, Event::Unmap(range));
        }
    }
}
