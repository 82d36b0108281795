//! Barriers among threads: the litmus tests of `membarrier`, each with the faults that it must catch.
//!
//! CPU 0 asks for a barrier. CPU 1 runs thread T, whose accesses are relaxed and have no fence between them. Two shapes of test:
//!
//! * *Each stores, then loads what the other stores* ([`Exchange`]). Not both may miss the other's store.
//! * *T leaves word of what it did* ([`follow_the_word`]). Who has the word, and then a barrier, sees what T did before.
//!
//! What differs is where T's CPU is at that moment: in user mode, on the way in or out, in a switch. Processes that register are in
//! `registration`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed as Plain;

use coherence::{CpuId, CpuSet, Fault, Platform, Reason, Row};
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::sync::atomic::fence;

use crate::Scenario;
use crate::machine::{UNORDERED, World};
use crate::scenarios::{TWO_CPUS, beside};

const CROSSINGS: Scenario = Scenario { counts_crossings: true, ..TWO_CPUS };

/// What both sides of an exchange have loaded, outside the machine's memory.
#[derive(Default)]
pub(crate) struct Exchange {
    by_caller: AtomicU64,
    by_thread: AtomicU64,
}

impl Exchange {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The side of T, in user mode, with interrupts wherever they may come.
    fn thread(&self, world: &World) {
        world.window();
        world.x.store(1, Relaxed);
        world.window();
        self.by_thread.store(world.y.load(Relaxed), Plain);
        world.window();
    }

    fn caller(&self, world: &World, barrier: impl FnOnce(&World)) {
        world.y.store(1, Relaxed);
        barrier(world);
        self.by_caller.store(world.x.load(Relaxed), Plain);
    }

    fn check(&self) {
        let loaded = (self.by_caller.load(Plain), self.by_thread.load(Plain));
        assert!(loaded != (0, 0), "{UNORDERED}: caller and thread missed each other's stores");
    }
}

/// Runs T's script on CPU 1 beside a caller on CPU 0 who uses the same space, and checks their exchange.
pub(crate) fn exchange(
    world: &Arc<World>,
    thread: impl FnOnce(&World, &Exchange) + 'static,
    barrier: fn(&World),
) {
    let exchange = Exchange::new();
    let theirs = exchange.clone();
    beside(world, move |world| thread(world, &theirs), |world| exchange.caller(world, barrier));
    exchange.check();
}

/// T stores, and leaves word, in user mode.
pub(crate) fn leave_word(world: &World) {
    world.x.store(1, Relaxed);
    world.y.store(1, Relaxed);
}

/// T leaves word, and its CPU goes idle.
pub(crate) fn go_idle(world: &World) {
    leave_word(world);
    world.go_lazy();
    world.window();
}

/// T's CPU comes to it, and it exchanges.
pub(crate) fn come_in(world: &World, exchange: &Exchange) {
    world.activate(0);
    exchange.thread(world);
}

/// Runs T's script, which leaves word, on CPU 1 beside a caller on CPU 0.
pub(crate) fn follow_the_word(
    world: &Arc<World>,
    thread: impl FnOnce(&World) + 'static,
    barrier: fn(&World),
) {
    beside(world, thread, |world| {
        if world.y.load(Relaxed) == 1 {
            barrier(world);
            assert!(world.x.load(Relaxed) == 1, "{UNORDERED}: the word came before the deed");
        }
    });
}

fn private(world: &World) {
    world.coherence.barrier(&world.spaces[0]);
}

pub(crate) fn global(world: &World) {
    world.coherence.global_barrier();
}

fn grace_period(world: &World) {
    let others = CpuSet::from(CpuId::new(1).unwrap());
    let mut period = world.coherence.begin_grace_period(others);
    while !period.is_over(&world.coherence) {
        world.hardware().relax();
    }
}

/// CPU 1 uses space 0.
pub(crate) fn active(world: &Arc<World>) {
    world.on(1, |world| world.activate(0));
}

fn active_in_user_mode(world: &Arc<World>) {
    active(world);
    world.on(1, World::enter_user);
}

/// T runs all the time: its CPU is interrupted.
pub(crate) const BESIDE_USER_CODE: Scenario = Scenario {
    script: |world| {
        active_in_user_mode(world);
        exchange(world, |world, exchange| exchange.thread(world), private);
    },
    ..CROSSINGS
};

/// T comes from the kernel.
pub(crate) const BESIDE_A_CROSSING: Scenario = Scenario {
    script: |world| {
        active(world);
        let thread = |world: &World, exchange: &Exchange| {
            world.enter_user();
            exchange.thread(world);
        };
        exchange(world, thread, private);
    },
    catches: &[Fault::NoFenceEnteringUser],
    ..CROSSINGS
};

/// T begins a system call.
pub(crate) const BESIDE_A_SYSTEM_CALL: Scenario = Scenario {
    script: |world| {
        active_in_user_mode(world);
        let thread = |world: &World| {
            leave_word(world);
            world.leave_user();
            world.window();
        };
        follow_the_word(world, thread, private);
    },
    catches: &[Fault::RelaxedLeavingUser],
    ..CROSSINGS
};

/// T is interrupted between its store and its load, and a third thread, with fences of its own, makes the exchange with it.
fn with_a_third_thread(world: &Arc<World>, barrier: fn(&World)) {
    active_in_user_mode(world);
    let exchange = Exchange::new();
    let [theirs, thirds] = [exchange.clone(), exchange.clone()];
    let thread = world.spawn(1, move |world| {
        world.x.store(1, Relaxed);
        let interrupted = world.window();
        let loaded = world.y.load(Relaxed);
        theirs.by_thread.store(if interrupted { loaded } else { 1 }, Plain);
    });
    let third = world.spawn(2, move |world| thirds.caller(world, |_| fence(SeqCst)));
    world.on(0, barrier);
    thread.join().unwrap();
    third.join().unwrap();
    exchange.check();
}

pub(crate) const A_THIRD_THREAD: Scenario = Scenario {
    cpus: 3,
    preemptions: Some(3),
    script: |world| with_a_third_thread(world, private),
    catches: &[Fault::NoFenceInHandler],
    ..CROSSINGS
};

/// The same with a barrier for cores, which does more than a barrier, and not instead of one.
pub(crate) const A_THIRD_THREAD_AND_CORES: Scenario = Scenario {
    script: |world| {
        with_a_third_thread(world, |world| world.coherence.core_barrier(&world.spaces[0]));
    },
    catches: &[Fault::SerialiseWithoutFence, Fault::NoFenceInHandler],
    ..A_THIRD_THREAD
};

/// And with one for sequences.
pub(crate) const A_THIRD_THREAD_AND_SEQUENCES: Scenario = Scenario {
    script: |world| {
        with_a_third_thread(world, |world| world.coherence.sequence_barrier(&world.spaces[0]));
    },
    catches: &[Fault::SerialiseWithoutFence, Fault::NoFenceInHandler],
    ..A_THIRD_THREAD
};

/// Family A: T's CPU goes idle.
pub(crate) const SWITCHING_OUT: Scenario = Scenario {
    script: |world| {
        active(world);
        follow_the_word(world, go_idle, private);
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// Families B and E: T's CPU was idle, or a kernel task borrowed the space there; now T runs.
pub(crate) const A_THREAD_COMING_BACK: Scenario = Scenario {
    script: |world| {
        active(world);
        world.on(1, World::go_lazy);
        exchange(world, come_in, private);
    },
    catches: &[Fault::NoFenceComingBack],
    ..TWO_CPUS
};

/// Families B and E: T's CPU ran another process.
pub(crate) const SWITCHING_IN: Scenario = Scenario {
    script: |world| {
        world.on(1, |world| world.activate(1));
        exchange(world, come_in, private);
    },
    catches: &[Fault::NoFenceEntering],
    ..TWO_CPUS
};

/// Family D: T ends, and with it the CPU's part in the space.
pub(crate) const EXITING: Scenario = Scenario {
    script: |world| {
        active(world);
        let thread = |world: &World| {
            leave_word(world);
            world.leave();
            world.window();
        };
        follow_the_word(world, thread, private);
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// Family A, for fetched instructions: T's CPU goes idle. Such a barrier orders accesses too.
pub(crate) const SWITCHING_OUT_OF_CORES: Scenario = Scenario {
    script: |world| {
        active(world);
        follow_the_word(world, go_idle, |world| world.coherence.core_barrier(&world.spaces[0]));
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// Two threads ask at once, on CPUs 0 and 2, and T runs all the time. Who takes the end of the other's round for its own sees what
/// T did before that one reached it.
pub(crate) const ROUND_OF_ANOTHER: Scenario = Scenario {
    cpus: 3,
    awaited: Some(1),
    follower: Some(2),
    preemptions: Some(2),
    script: |world| {
        active_in_user_mode(world);
        let exchange = Exchange::new();
        let [theirs, callers] = [exchange.clone(), exchange.clone()];
        let cpus = [
            world.spawn(1, move |world| {
                world.x.store(1, Relaxed);
                theirs.by_thread.store(world.y.load(Relaxed), Plain);
                // It takes its interrupt itself: were that played by the leader, its fence would do for the end of the round.
                while !world.window() {
                    loom::thread::yield_now();
                }
            }),
            world.spawn(2, move |world| callers.caller(world, private)),
        ];
        world.on(0, private);
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
        exchange.check();
    },
    shows: Some(Row::Skipped(Reason::SharedRound)),
    ..CROSSINGS
};

/// Two threads ask at once, on CPUs 0 and 2; either may lead the round that serves both.
pub(crate) const TWO_CALLERS: Scenario = Scenario {
    cpus: 3,
    preemptions: Some(2),
    script: |world| {
        active(world);
        let exchange = Exchange::new();
        let theirs = exchange.clone();
        let cpus = [
            world.spawn(1, move |world| {
                world.enter_user();
                theirs.thread(world);
            }),
            world.spawn(2, private),
        ];
        world.on(0, |world| exchange.caller(world, private));
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
        exchange.check();
    },
    catches: &[Fault::NoFenceBarrier, Fault::RoundThatBeganBefore],
    ..CROSSINGS
};

/// The delayed barrier: T comes from the kernel, and goes back there.
pub(crate) const GRACE_PERIOD: Scenario = Scenario {
    script: |world| {
        active(world);
        let thread = |world: &World, exchange: &Exchange| {
            world.enter_user();
            exchange.thread(world);
            world.leave_user();
        };
        exchange(world, thread, grace_period);
    },
    catches: &[Fault::NoFenceGracePeriod, Fault::NoFenceEnteringUser],
    ..CROSSINGS
};

/// The delayed barrier: T begins a system call.
pub(crate) const GRACE_PERIOD_AND_SYSTEM_CALL: Scenario = Scenario {
    script: |world| {
        active_in_user_mode(world);
        let thread = |world: &World| {
            leave_word(world);
            world.leave_user();
        };
        follow_the_word(world, thread, grace_period);
    },
    catches: &[Fault::RelaxedLeavingUser],
    ..CROSSINGS
};

/// The delayed barrier: T makes a whole system call, so that its count may be seen odd and then odd again.
pub(crate) const GRACE_PERIOD_AND_BACK: Scenario = Scenario {
    script: |world| {
        active_in_user_mode(world);
        let thread = |world: &World| {
            leave_word(world);
            world.leave_user();
            world.enter_user();
            world.leave_user();
        };
        follow_the_word(world, thread, grace_period);
    },
    ..CROSSINGS
};
