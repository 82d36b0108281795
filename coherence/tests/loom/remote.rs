//! The races of a machine that drops translations on other CPUs by itself, at moments of its own and whatever they are doing.

use coherence::Fault;

use crate::Scenario;
use crate::scenarios::{TWO_CPUS, caches_page_0, unhook, unmap};

const REMOTE: Scenario = Scenario { remote: true, ..TWO_CPUS };

/// CPU 1 uses a page that is taken away.
pub(crate) const REMOTE_BESIDE_USER_CODE: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        let cpu = world.spawn(1, |world| {
            world.touch(0);
            world.touch(0);
        });
        world.on(0, |world| unmap(world, 0));
        cpu.join().unwrap();
    },
    catches: &[Fault::RemoteNotAwaited],
    ..REMOTE
};

/// CPU 1 switches to the space, of which it has kept the page under the shared tag, while that is taken away: it is seen, or sees.
pub(crate) const REMOTE_BESIDE_SWITCHING_IN: Scenario = Scenario {
    tags: 2,
    script: |world| {
        caches_page_0(world);
        world.on(1, |world| world.activate(1));
        let cpu = world.spawn(1, |world| {
            world.activate(0);
            world.touch(0);
        });
        world.on(0, |world| unmap(world, 0));
        cpu.join().unwrap();
    },
    catches: &[
        Fault::NoFenceEntering,
        Fault::GenerationBeforeSetEntering,
        Fault::NoFenceInitiator,
        Fault::RemoteNotAwaited,
    ],
    ..REMOTE
};

/// CPU 1 goes lazy, and its walker goes on, while the table is freed.
pub(crate) const REMOTE_BESIDE_GOING_LAZY: Scenario = Scenario {
    speculates: true,
    script: |world| {
        caches_page_0(world);
        let cpu = world.spawn(1, |world| {
            world.go_lazy();
            world.speculate();
            world.speculate();
        });
        world.on(0, unhook);
        cpu.join().unwrap();
    },
    catches: &[Fault::LazyReadFirst, Fault::LeaveActiveFirst, Fault::LazyNotToldOfTables],
    ..REMOTE
};
