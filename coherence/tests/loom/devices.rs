//! A device that walks space 0's table by itself: it hears of nothing but what it is told, in its own time.

use std::collections::HashMap;
use std::sync::Mutex;

use coherence::{Fault, Flush};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use crate::Scenario;
use crate::hardware::Tables;
use crate::machine::{LOST_STORE, PAGE, UNSAFE_FRAME, World};
use crate::scenarios::{TWO_CPUS, unmap};

/// The device. Its thread is the one that plays CPU 1, which drives it.
pub(crate) struct Device {
    /// Pages that it has been told to drop: a bit for each.
    told: AtomicU64,
    /// Its thread is over, so that it works no more.
    is_over: AtomicBool,
    /// An initiator's own note.
    was_told: std::sync::atomic::AtomicBool,
    translations: Mutex<HashMap<usize, u64>>,
}

impl Device {
    pub(crate) fn new() -> Self {
        Device {
            told: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            was_told: false.into(),
            translations: Mutex::default(),
        }
    }

    fn was_told(&self) -> bool {
        self.was_told.load(Relaxed)
    }

    fn do_as_told(&self) {
        let pages = self.told.swap(0, AcqRel);
        self.translations.lock().unwrap().retain(|page, _| pages & (1 << page) == 0);
    }

    /// An access: the frame that it goes to.
    fn access(&self, tables: &Tables, page: usize) -> Option<u64> {
        self.do_as_told();
        let cached = self.translations.lock().unwrap().get(&page).copied();
        let frame = cached.unwrap_or_else(|| tables.entries[page].load(Relaxed));
        if frame != 0 {
            self.translations.lock().unwrap().insert(page, frame);
        }
        (frame != 0).then_some(frame)
    }

    /// An initiator tells it, and waits in `relax`.
    pub(crate) fn drop_pages(&self, flush: &Flush, relax: impl Fn()) {
        let pages = |(start, count, stride): (u64, u64, u64)| {
            (0..count).map(|page| 1 << ((start + page * stride) / PAGE)).sum()
        };
        self.was_told.store(true, Relaxed);
        self.told.fetch_or(flush.span().map_or(!0, pages), AcqRel);
        while self.told.load(Acquire) != 0 {
            if self.is_over.load(Acquire) {
                self.do_as_told();
            }
            relax();
        }
    }
}

fn touch(world: &World, page: usize) {
    if let Some(frame) = world.device().access(world.tables(), page) {
        assert!(!world.is_freed(frame as usize), "{UNSAFE_FRAME}: a device used a freed frame");
    }
}

const DEVICE: Scenario = Scenario { device: true, ..TWO_CPUS };

/// A driver attaches the device, which begins to work, while a page is taken away: it finds the new entry, or is found.
pub(crate) const ATTACHING: Scenario = Scenario {
    script: |world| {
        let driver = world.spawn(1, |world| {
            world.coherence.attach_device(&world.spaces[0]);
            touch(world, 0);
            touch(world, 0);
            world.device().is_over.store(true, Release);
        });
        world.on(0, |world| unmap(world, 0));
        driver.join().unwrap();
        world.coherence.detach_device(&world.spaces[0]);
    },
    catches: &[Fault::NoFenceAttaching, Fault::NoFenceInitiator, Fault::DevicesNotTold],
    ..DEVICE
};

/// A driver stops the device, which has written, and detaches it, while a page is taken away: whoever finds no device finds what
/// it wrote.
pub(crate) const DETACHING: Scenario = Scenario {
    script: |world| {
        world.coherence.attach_device(&world.spaces[0]);
        world.on(1, |world| touch(world, 0));
        let driver = world.spawn(1, |world| {
            world.x.store(1, Relaxed);
            world.device().translations.lock().unwrap().clear();
            world.device().is_over.store(true, Release);
            world.coherence.detach_device(&world.spaces[0]);
        });
        world.on(0, |world| {
            unmap(world, 0);
            let written = world.x.load(Relaxed) == 1;
            assert!(written || world.device().was_told(), "{LOST_STORE}: the device's last store is missing");
        });
        driver.join().unwrap();
    },
    catches: &[Fault::RelaxedDetaching],
    ..DEVICE
};

impl World {
    fn device(self: &World) -> &Device {
        &self.hardware().device
    }
}
