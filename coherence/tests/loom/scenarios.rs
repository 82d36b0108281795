//! The races, each with the faults that it must catch: those of one operation beside a switch, and the list of all, by whose names
//! they are run.
//!
//! CPU 0 takes something away; CPU 1 has it cached, and changes what it has loaded at that moment.

use std::sync::Arc;

use coherence::{Cause, Fault, Flush};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::barriers::*;
use crate::batch::*;
use crate::devices::*;
use crate::epochs::*;
use crate::machine::{PAGE, World};
use crate::mode::*;
use crate::operations::*;
use crate::registration::*;
use crate::remote::*;
use crate::sharers::*;

pub(crate) const TWO_CPUS: Scenario = Scenario {
    cpus: 2,
    tags: 1,
    speculates: false,
    remote: false,
    device: false,
    counts_crossings: false,
    awaited: None,
    follower: None,
    preemptions: None,
    shows: None,
    script: |_| {},
    catches: &[],
};

/// Takes a page away, flushes, and gives its frame to a new owner.
pub(crate) fn unmap(world: &World, page: usize) {
    world.tables().entries[page].store(0, Relaxed);
    world.coherence.flush(&world.spaces[0], Flush::page(page as u64 * PAGE, PAGE), Cause::Munmap);
    world.free_frame(page + 1);
}

/// Unhooks the table, flushes, and gives its page to a new owner.
pub(crate) fn unhook(world: &World) {
    world.tables().upper.store(false, Relaxed);
    let flush = Flush::range(0, 2 * PAGE, PAGE).freeing_tables();
    world.coherence.flush(&world.spaces[0], flush, Cause::Munmap);
    world.tables().free();
}

/// Runs a script on CPU 1 beside one on CPU 0.
pub(crate) fn beside(world: &Arc<World>, theirs: impl FnOnce(&World) + 'static, ours: impl FnOnce(&World)) {
    let cpu = world.spawn(1, theirs);
    world.on(0, ours);
    cpu.join().unwrap();
}

/// CPU 1 has space 0 activated and page 0 cached, and with it the way to the table.
pub(crate) fn caches_page_0(world: &Arc<World>) {
    world.on(1, |world| {
        world.activate(0);
        world.touch(0);
    });
}

/// The CPU enters space 0, or comes back to it, and uses page 0 twice: also from what the first time has cached.
pub(crate) fn comes_to_page_0(world: &World) {
    world.activate(0);
    uses_page_0(world);
}

pub(crate) fn uses_page_0(world: &World) {
    world.touch(0);
    world.touch(0);
}

/// CPU 1 comes back from borrowing the space while a page is taken away.
pub(crate) const COMING_BACK: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        world.on(1, World::go_lazy);
        beside(world, comes_to_page_0, |world| unmap(world, 0));
    },
    catches: &[
        Fault::NoFenceComingBack,
        Fault::GenerationBeforeSetComingBack,
        Fault::NoComparison,
        Fault::NoFenceInitiator,
    ],
    ..TWO_CPUS
};

/// CPU 1 switches to the space, of which a tag slot still holds the page, while that is taken away.
pub(crate) const ENTERING: Scenario = Scenario {
    tags: 2,
    script: |world| {
        caches_page_0(world);
        world.on(1, |world| world.activate(1));
        beside(world, comes_to_page_0, |world| unmap(world, 0));
    },
    catches: &[Fault::NoFenceEntering, Fault::GenerationBeforeSetEntering, Fault::NoFenceInitiator],
    ..TWO_CPUS
};

/// CPU 1 goes lazy while a page is taken away, and is told, or finds out when it comes back.
pub(crate) const LAZY_AND_BACK: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.go_lazy();
                world.window();
                world.activate(0);
                world.touch(0);
            },
            |world| unmap(world, 0),
        );
    },
    catches: &[Fault::NoFenceComingBack, Fault::NoComparison, Fault::NoFenceInitiator],
    ..TWO_CPUS
};

/// CPU 1 goes lazy, and its walker goes on, while the table is freed.
pub(crate) const GOING_LAZY_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    speculates: true,
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.go_lazy();
                world.speculate();
                world.speculate();
            },
            unhook,
        );
    },
    catches: &[
        Fault::LazyReadFirst,
        Fault::LeaveActiveFirst,
        Fault::LazyNotToldOfTables,
        Fault::EarlyAcknowledgement,
    ],
    ..TWO_CPUS
};

/// CPU 1 comes back from borrowing the space while the table is freed.
pub(crate) const COMING_BACK_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    speculates: true,
    script: |world| {
        caches_page_0(world);
        world.on(1, World::go_lazy);
        beside(
            world,
            |world| {
                world.activate(0);
                world.touch(1);
                world.speculate();
            },
            unhook,
        );
    },
    catches: &[Fault::LeaveLazyBeforeFlush, Fault::NoFenceInitiator, Fault::EarlyAcknowledgement],
    ..TWO_CPUS
};

/// CPU 1 switches to another space while the table is freed.
pub(crate) const SWITCHING_AWAY_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    speculates: true,
    script: |world| {
        caches_page_0(world);
        beside(
            world,
            |world| {
                world.activate(1);
                world.window();
            },
            unhook,
        );
    },
    catches: &[Fault::LeaveSetsBeforeLoad],
    ..TWO_CPUS
};

/// CPU 1 borrows the space, and leaves it for the kernel root, while the table is freed.
pub(crate) const LEAVING_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    speculates: true,
    script: |world| {
        caches_page_0(world);
        world.on(1, World::go_lazy);
        beside(
            world,
            |world| {
                world.leave();
                world.window();
            },
            unhook,
        );
    },
    catches: &[Fault::LeaveSetsBeforeLoad, Fault::LazyNotToldOfTables],
    ..TWO_CPUS
};

macro_rules! tests {
    ($($test:ident: $scenario:ident,)+) => {
        $(
            #[test]
            fn $test() {
                $scenario.check();
            }
        )+

        /// A fault that no scenario catches would be a line of the protocol that nothing shows to be needed.
        #[test]
        fn every_fault_is_caught_somewhere() {
            let caught = [$($scenario.catches),+].concat();
            for fault in Fault::ALL {
                assert!(caught.contains(&fault), "no scenario is there for {fault:?}");
            }
        }
    };
}

tests! {
    coming_back: COMING_BACK,
    entering: ENTERING,
    lazy_and_back: LAZY_AND_BACK,
    going_lazy_while_tables_are_freed: GOING_LAZY_WHILE_TABLES_ARE_FREED,
    coming_back_while_tables_are_freed: COMING_BACK_WHILE_TABLES_ARE_FREED,
    switching_away_while_tables_are_freed: SWITCHING_AWAY_WHILE_TABLES_ARE_FREED,
    leaving_while_tables_are_freed: LEAVING_WHILE_TABLES_ARE_FREED,
    two_initiators: TWO_INITIATORS,
    two_initiators_and_one_user: TWO_INITIATORS_AND_ONE_USER,
    two_initiators_and_one_coming_back: TWO_INITIATORS_AND_ONE_COMING_BACK,
    copying: COPYING,
    copying_beside_going_lazy: COPYING_BESIDE_GOING_LAZY,
    nested_gathers: NESTED_GATHERS,
    returning_beside_a_flush: RETURNING_BESIDE_A_FLUSH,
    returning_beside_two_flushes: RETURNING_BESIDE_TWO_FLUSHES,
    leaving_beside_a_flush: LEAVING_BESIDE_A_FLUSH,
    remote_flush_beside_user_code: REMOTE_BESIDE_USER_CODE,
    remote_flush_beside_switching_in: REMOTE_BESIDE_SWITCHING_IN,
    remote_flush_beside_going_lazy: REMOTE_BESIDE_GOING_LAZY,
    remote_flushes_and_new_spaces: REMOTE_AND_NEW_SPACES,
    device_being_attached: ATTACHING,
    device_being_detached: DETACHING,
    batch_and_coming_back: BATCH_AND_COMING_BACK,
    batch_and_user: BATCH_AND_USER,
    batch_and_operation: BATCH_AND_OPERATION,
    batch_meets_operation: BATCH_MEETS_OPERATION,
    batch_meets_operation_on_others: BATCH_MEETS_OPERATION_ON_OTHERS,
    batch_and_going_lazy: BATCH_AND_GOING_LAZY,
    batch_that_settles: BATCH_THAT_SETTLES,
    batch_settled_by_an_operation: BATCH_SETTLED_BY_AN_OPERATION,
    epoch_and_coming_back: EPOCH_AND_COMING_BACK,
    epoch_and_user: EPOCH_AND_USER,
    epoch_that_is_reached: EPOCH_THAT_IS_REACHED,
    epoch_reached_by_leaving: EPOCH_REACHED_BY_LEAVING,
    finding_a_table: FINDING_A_TABLE,
    leaving_a_table: LEAVING_A_TABLE,
    epoch_and_operation: EPOCH_AND_OPERATION,
    barrier_beside_user_code: BESIDE_USER_CODE,
    barrier_beside_a_crossing: BESIDE_A_CROSSING,
    barrier_beside_a_system_call: BESIDE_A_SYSTEM_CALL,
    barrier_and_a_third_thread: A_THIRD_THREAD,
    core_barrier_and_a_third_thread: A_THIRD_THREAD_AND_CORES,
    sequence_barrier_and_a_third_thread: A_THIRD_THREAD_AND_SEQUENCES,
    barrier_beside_switching_out: SWITCHING_OUT,
    barrier_beside_coming_back: A_THREAD_COMING_BACK,
    barrier_beside_switching_in: SWITCHING_IN,
    barrier_beside_an_exit: EXITING,
    barrier_for_all_beside_switching_in: SWITCHING_IN_REGISTERED,
    barrier_for_all_beside_switching_out: SWITCHING_OUT_REGISTERED,
    barrier_for_all_after_registering: REGISTERING,
    barrier_shared_by_two_callers: TWO_CALLERS,
    grace_period_beside_a_crossing: GRACE_PERIOD,
    core_barrier_beside_switching_out: SWITCHING_OUT_OF_CORES,
    barrier_for_all_after_registering_too_late: REGISTERING_AFTER_SWITCHING_OUT,
    grace_period_and_a_whole_system_call: GRACE_PERIOD_AND_BACK,
    barrier_for_all_registered_by_another: REGISTERED_BY_ANOTHER,
    registration_is_the_word: REGISTRATION_IS_THE_WORD,
    barrier_by_the_round_of_another: ROUND_OF_ANOTHER,
    grace_period_beside_a_system_call: GRACE_PERIOD_AND_SYSTEM_CALL,
}
