//! Deferred batches: who unmaps flushes only when he needs the frame, and not those who have flushed since. CPU 0 is the agent's, which has no space loaded.

use std::sync::Arc;

use coherence::{Cause, Deferred, Event, Fault, Row, Translation};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::batch::drop_page_0;
use crate::machine::{PAGE, World};
use crate::operations::{ABSENT, PRESENT};
use crate::scenarios::{TWO_CPUS, beside, caches_page_0, comes_to_page_0, uses_page_0};

const CLEAN: Translation = Translation { writable: false, dirty: false, ..PRESENT };

/// Takes page 0 out under its table's lock, and lets the flush wait.
fn put_by(world: &World, lock: &loom::sync::Mutex<()>) -> Deferred<()> {
    let mut batch = world.coherence.batch(Cause::Reclaim, ()).deferring();
    let guard = lock.lock().unwrap();
    world.tables().entries[0].store(0, Relaxed);
    let _ = batch.change(&world.spaces[0], 0, PAGE, &CLEAN, &ABSENT);
    drop(guard);
    batch.defer().expect("it can wait")
}

fn put_by_and_retire(world: &World) {
    let deferred = put_by(world, &loom::sync::Mutex::new(()));
    world.coherence.retire(deferred, Cause::Reclaim).into_inner();
    world.free_frame(1);
}

/// Relies on the page's absence if its users have flushed by then.
fn put_by_and_redeem(world: &World) {
    let deferred = put_by(world, &loom::sync::Mutex::new(()));
    if world.coherence.redeem(deferred).is_ok() {
        world.rely_on_absence(0);
    }
}

/// CPU 1 comes back from borrowing the space while a page is taken out, whose frame is needed at once.
pub(crate) const EPOCH_AND_COMING_BACK: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        world.on(1, World::go_lazy);
        beside(world, comes_to_page_0, put_by_and_retire);
    },
    catches: &[Fault::EpochReadLate, Fault::NoFenceBatch],
    ..TWO_CPUS
};

/// CPU 1 uses a page while it is taken out.
pub(crate) const EPOCH_AND_USER: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(world, uses_page_0, put_by_and_retire);
    },
    catches: &[Fault::EpochNotAdvanced, Fault::DeferredNotFlushed, Fault::BatchWithoutGeneration],
    ..TWO_CPUS
};

/// CPU 1 uses a page, borrows the space, and comes back, while the page is taken out. If it has flushed by then, nobody tells it: its uses come before what that is
/// relied on for.
pub(crate) const EPOCH_THAT_IS_REACHED: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.touch(0);
                world.go_lazy();
                world.activate(0);
            },
            put_by_and_redeem,
        );
    },
    shows: Some(Row::Event(Event::EpochFree)),
    catches: &[Fault::EpochNotAdvanced],
    ..TWO_CPUS
};

/// CPU 1 uses a page and lets go of its space, with no fence between, while the page is taken out. If that counts as its flush, its use comes before what that is relied
/// on for.
pub(crate) const EPOCH_REACHED_BY_LEAVING: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.touch(0);
                world.leave();
            },
            put_by_and_redeem,
        );
    },
    shows: Some(Row::Event(Event::EpochFree)),
    catches: &[Fault::EpochNotAdvanced],
    ..TWO_CPUS
};

/// CPU 1 drops the page that was taken out. When it returns it may not hold it any more.
pub(crate) const EPOCH_AND_OPERATION: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        beside(
            world,
            move |world| drop_page_0(world, &theirs, &CLEAN),
            |world| {
                let _waits = put_by(world, &lock);
            },
        );
    },
    catches: &[Fault::DeferredNotSettled],
    ..TWO_CPUS
};
