//! CPUs that find tables one by one: who changes an entry tells those that have found its table, and no other. All of these use space 0 with page 0 in
//! a table that CPU 1 has not found yet.

use std::sync::Arc;

use coherence::{Cause, CpuId, Fault, Sharers};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::machine::{PAGE, World};
use crate::operations::{ABSENT, PRESENT};
use crate::scenarios::{TWO_CPUS, beside, uses_page_0};

fn one() -> CpuId {
    CpuId::new(1).expect("there are two")
}

/// CPU 1 faults, finds the table, and uses page 0.
fn find_and_use(world: &World, sharers: &Sharers) {
    world.coherence.join_sharers(one(), sharers);
    uses_page_0(world);
}

/// CPU 0 takes page 0 out, and tells the sharers of its table.
fn unmap_within(world: &World, sharers: &Sharers) {
    let mut gather = world.coherence.gather(&world.spaces[0], Cause::Munmap, ());
    world.tables().entries[0].store(0, Relaxed);
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    gather.within(&[sharers]);
    gather.finish().into_inner();
}

/// CPU 1 finds the table while page 0 is taken out of it, whose frame gets another owner.
pub(crate) const FINDING_A_TABLE: Scenario = Scenario {
    script: |world| {
        world.on(1, |world| world.activate(0));
        let sharers = Arc::new(Sharers::new());
        let theirs = sharers.clone();
        beside(
            world,
            move |world| find_and_use(world, &theirs),
            |world| {
                unmap_within(world, &sharers);
                world.free_frame(1);
            },
        );
    },
    catches: &[Fault::NoFenceSharing, Fault::NoFenceBeforeSharers],
    ..TWO_CPUS
};

/// CPU 1 has found the table, uses page 0 and lets go of the space, and of the table, while page 0 is taken out. Its uses come before what that
/// is relied on for, whether it was told or was no sharer any more.
pub(crate) const LEAVING_A_TABLE: Scenario = Scenario {
    script: |world| {
        let sharers = Arc::new(Sharers::new());
        let theirs = sharers.clone();
        world.on(1, |world| {
            world.activate(0);
            find_and_use(world, &sharers);
        });
        // CPU 0 uses the space too, so that it flushes by itself if it finds itself alone.
        world.on(0, |world| {
            world.activate(0);
            world.coherence.join_sharers(CpuId::new(0).expect("there are two"), &sharers);
        });
        beside(
            world,
            move |world| {
                world.touch(0);
                world.drop_and_reload();
                theirs.leave(one());
            },
            |world| {
                unmap_within(world, &sharers);
                world.rely_on_absence(0);
            },
        );
    },
    ..TWO_CPUS
};
