//! Operations that meet: two that take pages away at once, one that copies what is stored meanwhile, two that drop the same page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed as Plain};

use coherence::{Cause, Fault, Flush, Translation};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::machine::{EARLY_RETURN, LOST_STORE, PAGE, World};
use crate::scenarios::{TWO_CPUS, beside, caches_page_0, unmap};

/// Both CPUs have both pages cached. Each takes one away and waits for the other.
pub(crate) const TWO_INITIATORS: Scenario = Scenario {
    script: |world| {
        for cpu in 0..2 {
            world.on(cpu, |world| {
                world.activate(0);
                world.touch(0);
                world.touch(1);
            });
        }
        beside(
            world,
            |world| {
                unmap(world, 1);
                world.touch(0);
            },
            |world| {
                unmap(world, 0);
                world.touch(1);
            },
        );
    },
    catches: &[Fault::PlainAdvance, Fault::NoGapRule],
    ..TWO_CPUS
};

/// Two CPUs take pages away that a third uses. Its interrupt may be for the one, and find the other's request too.
pub(crate) const TWO_INITIATORS_AND_ONE_USER: Scenario = Scenario {
    cpus: 3,
    awaited: Some(2),
    preemptions: Some(2),
    script: |world| {
        world.on(2, |world| {
            world.activate(0);
            world.touch(0);
            world.touch(1);
        });
        let cpus = [
            world.spawn(1, |world| unmap(world, 1)),
            world.spawn(2, |world| {
                world.touch(0);
                world.touch(1);
            }),
        ];
        world.on(0, |world| unmap(world, 0));
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
    },
    ..TWO_CPUS
};

/// Two CPUs take pages away while a third comes back from borrowing the space.
pub(crate) const TWO_INITIATORS_AND_ONE_COMING_BACK: Scenario = Scenario {
    cpus: 3,
    // Two waiting loops beside a third thread: with 3 preemptions they take turns until loom gives up.
    preemptions: Some(2),
    script: |world| {
        world.on(2, |world| {
            world.activate(0);
            world.touch(0);
            world.touch(1);
            world.go_lazy();
        });
        let cpus = [
            world.spawn(1, |world| unmap(world, 1)),
            world.spawn(2, |world| {
                world.activate(0);
                world.touch(0);
                world.touch(1);
            }),
        ];
        world.on(0, |world| unmap(world, 0));
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
    },
    catches: &[Fault::NoComparison],
    ..TWO_CPUS
};

/// Runs CPU 1's scripts beside a copy of page 0 on CPU 0: CPU 1 has cached the page, and stores in it between the two.
pub(crate) fn copy_beside(world: &Arc<World>, before: fn(&World), script: fn(&World)) {
    caches_page_0(world);
    let stored = Arc::new(AtomicBool::new(false));
    let theirs = stored.clone();
    beside(
        world,
        move |world| {
            before(world);
            // The record is made in one step with the store, as loom does not see it.
            theirs.store(world.store(0), Plain);
            script(world);
        },
        |world| {
            world.tables().entries[0].store(0, Relaxed);
            world.coherence.flush(&world.spaces[0], Flush::page(0, PAGE), Cause::CopyOnWrite);
            let stored = stored.load(Plain);
            let copied = world.hardware().contents[1].load(Relaxed) == 1;
            assert!(copied || !stored, "{LOST_STORE}: a page was copied without what CPU 1 had stored in it");
        },
    );
}

/// A page is taken away and copied while CPU 1 stores in it, and is told.
pub(crate) const COPYING: Scenario = Scenario {
    script: |world| {
        let be_told = |world: &World| {
            world.window();
        };
        copy_beside(world, |_| {}, be_told);
    },
    ..TWO_CPUS
};

/// A page is taken away and copied while CPU 1 stores in it and goes lazy.
pub(crate) const COPYING_BESIDE_GOING_LAZY: Scenario = Scenario {
    script: |world| {
        let go_lazy = |world: &World| {
            world.go_lazy();
            world.window();
        };
        copy_beside(world, |_| {}, go_lazy);
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

pub(crate) const PRESENT: Translation = Translation {
    present: true,
    frame: 1,
    writable: true,
    user: true,
    executable: false,
    accessed: true,
    unused: false,
    dirty: true,
    global: false,
    huge: false,
    other: 0,
    software: 0,
};
pub(crate) const ABSENT: Translation = Translation { present: false, ..PRESENT };

/// Two operations drop the same page. Whichever finds it gone already may not say "gone" while its CPU holds it.
pub(crate) const NESTED_GATHERS: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        let lock = Arc::new(loom::sync::Mutex::new(()));
        let drop_page = |lock: Arc<loom::sync::Mutex<()>>| {
            move |world: &World| {
                let gather = world.coherence.gather(&world.spaces[0], Cause::Dontneed, ());
                let mut gather = gather.about(Flush::page(0, PAGE));
                let guard = lock.lock().unwrap();
                let is_first = world.tables().entries[0].load(Relaxed) != 0;
                if is_first {
                    world.tables().entries[0].store(0, Relaxed);
                    gather.change(0, PAGE, &PRESENT, &ABSENT);
                }
                drop(guard);
                // It may still use what it has not flushed yet. Whoever finds the page gone relies on that being over.
                world.find(0);
                gather.finish().into_inner();
                if !is_first {
                    world.rely_on_absence(0);
                }
                assert!(world.find(0).is_none(), "{EARLY_RETURN}: a page was used after it had been dropped");
            }
        };
        beside(world, drop_page(lock.clone()), drop_page(lock));
    },
    catches: &[Fault::NoNestedRule],
    ..TWO_CPUS
};
