//! A CPU in the kernel is spared the interrupt for a flush, and drops what it has missed before it goes back to user mode.
//!
//! CPU 0 takes a page away; CPU 1 has it cached, and crosses between user mode and kernel at that moment.

use coherence::Fault;

use crate::Scenario;
use crate::machine::World;
use crate::operations::copy_beside;
use crate::scenarios::{TWO_CPUS, beside, caches_page_0, unmap};

const CROSSINGS: Scenario = Scenario { counts_crossings: true, ..TWO_CPUS };

/// CPU 1, which is in the kernel, goes back to user mode.
pub(crate) const RETURNING_BESIDE_A_FLUSH: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.enter_user();
                world.touch(0);
                world.touch(0);
            },
            |world| unmap(world, 0),
        );
    },
    catches: &[
        Fault::KernelSparedUnmarked,
        Fault::PlainMark,
        Fault::MarkIgnored,
        Fault::NoFenceEnteringUser,
        Fault::NoFenceInitiator,
    ],
    ..CROSSINGS
};

/// CPU 1 goes back to user mode while two others take a page away each: one of them finds the mark of the other.
pub(crate) const RETURNING_BESIDE_TWO_FLUSHES: Scenario = Scenario {
    cpus: 3,
    preemptions: Some(2),
    script: |world| {
        caches_page_0(world);
        world.on(1, |world| world.touch(1));
        let other = world.spawn(2, |world| unmap(world, 1));
        beside(
            world,
            |world| {
                world.enter_user();
                world.touch(0);
                world.touch(1);
            },
            |world| unmap(world, 0),
        );
        other.join().unwrap();
    },
    catches: &[
        Fault::KernelSparedUnmarked,
        Fault::MarkIgnored,
        Fault::NoFenceInitiator,
        Fault::NoFenceEnteringUser,
    ],
    ..CROSSINGS
};

/// CPU 1 stores to the page and begins a system call: who is spared the interrupt has let all know what it stored.
pub(crate) const LEAVING_BESIDE_A_FLUSH: Scenario = Scenario {
    script: |world| {
        // On CPU 1's own thread: loom cannot order a plain store against an atomic step of another one.
        copy_beside(world, World::enter_user, |world| {
            world.leave_user();
            world.window();
        });
    },
    catches: &[Fault::RelaxedLeavingUser],
    ..CROSSINGS
};
