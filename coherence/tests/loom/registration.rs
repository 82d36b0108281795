//! Barriers for all processes that have registered: the litmus tests' family C. T is as in `barriers`; its process is registered before, or
//! by another thread meanwhile.

use coherence::{Fault, Registration};
use loom::sync::atomic::Ordering::Relaxed;

use crate::Scenario;
use crate::barriers::{active, come_in, exchange, follow_the_word, global, go_idle, leave_word};
use crate::machine::{UNORDERED, World};
use crate::scenarios::{TWO_CPUS, beside};

/// The process registers, and the caller asks then.
fn register_and_ask(world: &World) {
    world.coherence.register(&world.spaces[0], Registration::Global);
    global(world);
}
/// Family C: T's process is registered, and its CPU ran another one.
pub(crate) const SWITCHING_IN_REGISTERED: Scenario = Scenario {
    script: |world| {
        world.on(1, |world| {
            world.coherence.register(&world.spaces[0], Registration::Global);
            world.activate(1);
        });
        exchange(world, come_in, global);
    },
    catches: &[Fault::NoFenceReceiving],
    ..TWO_CPUS
};

/// Family C: T's process is registered, and its CPU goes idle.
pub(crate) const SWITCHING_OUT_REGISTERED: Scenario = Scenario {
    script: |world| {
        world.on(1, |world| {
            world.activate(0);
            world.coherence.register(&world.spaces[0], Registration::Global);
        });
        follow_the_word(world, go_idle, global);
    },
    catches: &[Fault::RelaxedLeavingReceivers],
    ..TWO_CPUS
};

/// Family C: another thread of T's process registers while T comes back, and then asks for a barrier.
pub(crate) const REGISTERING: Scenario = Scenario {
    script: |world| {
        active(world);
        world.on(1, World::go_lazy);
        exchange(world, come_in, register_and_ask);
    },
    catches: &[Fault::RegistrationNotTold, Fault::NoFenceComingBack],
    ..TWO_CPUS
};

/// Family C: T's CPU goes idle, and only then another thread registers. Nothing but the set tells it what T did.
pub(crate) const REGISTERING_AFTER_SWITCHING_OUT: Scenario = Scenario {
    script: |world| {
        active(world);
        follow_the_word(world, go_idle, register_and_ask);
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// Family C: T's CPU goes idle, another thread registers the process, and a third one, which finds it registered, asks. Only the
/// registration tells it what T did.
pub(crate) const REGISTERED_BY_ANOTHER: Scenario = Scenario {
    cpus: 3,
    preemptions: Some(2),
    script: |world| {
        active(world);
        let cpus = [
            world.spawn(1, |world| {
                leave_word(world);
                world.go_lazy();
                world.window();
            }),
            world.spawn(2, |world| world.coherence.register(&world.spaces[0], Registration::Global)),
        ];
        world.on(0, |world| {
            let has_word = world.y.load(Relaxed) == 1;
            if has_word && world.spaces[0].is_registered(Registration::Global) {
                global(world);
                assert!(world.x.load(Relaxed) == 1, "{UNORDERED}: the word came before the deed");
            }
        });
        cpus.into_iter().for_each(|cpu| cpu.join().unwrap());
    },
    catches: &[Fault::RelaxedLeavingActive],
    ..TWO_CPUS
};

/// Who finds a process registered relies on all that came before, without any barrier.
pub(crate) const REGISTRATION_IS_THE_WORD: Scenario = Scenario {
    script: |world| {
        // CPU 0, whose thread is the first, registers: loom tries no step early that another thread's look came before, if the stepping one
        // has looked since.
        beside(
            world,
            |world| {
                if world.spaces[0].is_registered(Registration::Private) {
                    assert!(world.x.load(Relaxed) == 1, "{UNORDERED}: the word came before the deed");
                }
            },
            |world| {
                world.x.store(1, Relaxed);
                world.coherence.register(&world.spaces[0], Registration::Private);
            },
        );
    },
    ..TWO_CPUS
};
