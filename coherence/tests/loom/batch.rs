//! Batches: who unmaps records, and flushes later. CPU 0 is the agent's, which has no space loaded.

use std::sync::Arc;

use coherence::{Batch, Cause, Fault, Recorded, Translation};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::hardware::Hardware;
use crate::machine::{EARLY_RETURN, PAGE, World};
use crate::operations::{ABSENT, PRESENT};
use crate::scenarios::{TWO_CPUS, beside, caches_page_0, comes_to_page_0, uses_page_0};

/// Takes page 0 out under its table's lock, as an agent does.
fn take_out<'a>(world: &'a World, lock: &loom::sync::Mutex<()>) -> (Batch<'a, Hardware, ()>, Recorded) {
    let mut batch = world.coherence.batch(Cause::Reclaim, ());
    let guard = lock.lock().unwrap();
    world.tables().entries[0].store(0, Relaxed);
    let recorded = batch.change(&world.spaces[0], 0, PAGE, &PRESENT, &ABSENT);
    drop(guard);
    (batch, recorded.expect("the page was there"))
}

/// An operation drops page 0, if it is there still. When it returns this CPU may not hold it any more.
pub(crate) fn drop_page_0(world: &World, lock: &loom::sync::Mutex<()>, was: &Translation) {
    let mut gather = world.coherence.gather(&world.spaces[0], Cause::Dontneed, ());
    let guard = lock.lock().unwrap();
    gather.settle();
    if world.tables().entries[0].load(Relaxed) != 0 {
        world.tables().entries[0].store(0, Relaxed);
        gather.change(0, PAGE, was, &ABSENT);
    }
    drop(guard);
    gather.finish().into_inner();
    assert!(world.find(0).is_none(), "{EARLY_RETURN}: a page was used after it had been dropped");
}

/// An operation that finds page 0 gone returns, and its caller relies on that.
fn rely_if_gone(world: &World, lock: &loom::sync::Mutex<()>) {
    let mut gather = world.coherence.gather(&world.spaces[0], Cause::Dontneed, ());
    let guard = lock.lock().unwrap();
    gather.settle();
    let is_gone = world.tables().entries[0].load(Relaxed) == 0;
    drop(guard);
    gather.finish().into_inner();
    if is_gone {
        world.rely_on_absence(0);
    }
}

/// CPU 1 comes back from borrowing the space while a page is taken out in a batch, and freed at its end.
pub(crate) const BATCH_AND_COMING_BACK: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        world.on(1, World::go_lazy);
        beside(world, comes_to_page_0, |world| {
            let lock = loom::sync::Mutex::new(());
            take_out(world, &lock).0.finish().into_inner();
            world.free_frame(1);
        });
    },
    catches: &[
        Fault::NoFenceBatch,
        Fault::BatchTargetsReadFirst,
        Fault::NoFenceComingBack,
        Fault::NoComparison,
    ],
    ..TWO_CPUS
};

/// CPU 1 uses a page while it is taken out in a batch, and freed at its end.
pub(crate) const BATCH_AND_USER: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(world, uses_page_0, |world| {
            let lock = loom::sync::Mutex::new(());
            take_out(world, &lock).0.finish().into_inner();
            world.free_frame(1);
        });
    },
    catches: &[Fault::BatchWithoutGeneration],
    ..TWO_CPUS
};

/// CPU 1 uses a page and goes lazy while it is taken out in a batch. Its last use comes before what the batch's end is relied on for.
pub(crate) const BATCH_AND_GOING_LAZY: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.touch(0);
                world.go_lazy();
                world.window();
            },
            |world| {
                let lock = loom::sync::Mutex::new(());
                take_out(world, &lock).0.finish().into_inner();
                world.rely_on_absence(0);
            },
        );
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// CPU 1 finds a page gone that a batch of CPU 0 has taken out, and which CPU 0 goes on using until that is flushed. The batch says
/// when it is.
pub(crate) const BATCH_THAT_SETTLES: Scenario = Scenario {
    script: |world| {
        world.on(0, |world| {
            world.activate(0);
            world.touch(0);
        });
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        let agent = world.spawn(0, move |world| {
            let (batch, recorded) = take_out(world, &theirs);
            world.touch(0);
            batch.finish().settles(&world.spaces[0], recorded);
        });
        world.on(1, |world| rely_if_gone(world, &lock));
        agent.join().unwrap();
    },
    catches: &[Fault::BatchNotSettled],
    ..TWO_CPUS
};

/// CPU 1 uses a page that CPU 0 takes out in a batch. CPU 0 needs that flushed for a reason of its own, before the batch's end; and CPU 2
/// finds the page gone.
pub(crate) const BATCH_SETTLED_BY_AN_OPERATION: Scenario = Scenario {
    cpus: 3,
    awaited: Some(1),
    preemptions: Some(2),
    script: |world| {
        caches_page_0(world);
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        let cpus = [
            world.spawn(0, move |world| {
                let (batch, _) = take_out(world, &theirs);
                world.coherence.settle(&world.spaces[0], Cause::CopyOnWrite);
                batch.finish().into_inner();
            }),
            world.spawn(1, |world| world.touch(0)),
        ];
        world.on(2, |world| rely_if_gone(world, &lock));
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
    },
    catches: &[Fault::BatchNotSettled],
    ..TWO_CPUS
};

/// CPU 1 drops the page that a batch has taken out. When it returns it may not hold it any more.
pub(crate) const BATCH_AND_OPERATION: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        beside(
            world,
            move |world| drop_page_0(world, &theirs, &PRESENT),
            |world| {
                take_out(world, &lock).0.finish().into_inner();
            },
        );
    },
    catches: &[Fault::BatchNotSettled],
    ..TWO_CPUS
};

/// CPU 0 concludes from an entry that CPU 1's operation has emptied that nobody has the page. It waits for that one's flush.
pub(crate) const BATCH_MEETS_OPERATION: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        beside(
            world,
            move |world| {
                let mut gather = world.coherence.gather(&world.spaces[0], Cause::Munmap, ());
                let guard = theirs.lock().unwrap();
                world.tables().entries[0].store(0, Relaxed);
                gather.change(0, PAGE, &PRESENT, &ABSENT);
                drop(guard);
                // Another thread of the program gets this CPU.
                world.touch(0);
                gather.finish().into_inner();
            },
            |world| {
                let mut batch = world.coherence.batch(Cause::Reclaim, ());
                let guard = lock.lock().unwrap();
                let is_gone = world.tables().entries[0].load(Relaxed) == 0;
                let _ = batch.meet(&world.spaces[0]);
                drop(guard);
                batch.finish().into_inner();
                if is_gone {
                    world.free_frame(1);
                    world.rely_on_absence(0);
                }
            },
        );
    },
    catches: &[Fault::BatchMeetsNobody],
    ..TWO_CPUS
};

/// The same, where CPU 2 uses the page, and has nothing to do with the agent but through the operation's end.
pub(crate) const BATCH_MEETS_OPERATION_ON_OTHERS: Scenario = Scenario {
    cpus: 3,
    awaited: Some(2),
    preemptions: Some(2),
    script: |world| {
        world.on(2, |world| {
            world.activate(0);
            world.touch(0);
        });
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let theirs = lock.clone();
        let cpus = [
            world.spawn(1, move |world| {
                let mut gather = world.coherence.gather(&world.spaces[0], Cause::Munmap, ());
                let guard = theirs.lock().unwrap();
                world.tables().entries[0].store(0, Relaxed);
                gather.change(0, PAGE, &PRESENT, &ABSENT);
                drop(guard);
                gather.finish().into_inner();
            }),
            world.spawn(2, |world| world.touch(0)),
        ];
        world.on(0, |world| {
            let mut batch = world.coherence.batch(Cause::Reclaim, ());
            let guard = lock.lock().unwrap();
            let is_gone = world.tables().entries[0].load(Relaxed) == 0;
            let _ = batch.meet(&world.spaces[0]);
            drop(guard);
            batch.finish().into_inner();
            if is_gone {
                world.rely_on_absence(0);
            }
        });
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
    },
    catches: &[Fault::BatchMeetsNobody],
    ..TWO_CPUS
};
