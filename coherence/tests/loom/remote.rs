//! The races of a machine that drops translations on other CPUs by itself, at moments of its own and whatever they are doing.

use std::sync::{Arc, Mutex};

use coherence::Fault;

use crate::Scenario;
use crate::machine::{UNSAFE_FRAME, World};
use crate::scenarios::{TWO_CPUS, beside, caches_page_0, unhook, unmap, uses_page_0};

const REMOTE: Scenario = Scenario { remote: true, ..TWO_CPUS };

/// CPU 1 uses a page that is taken away.
pub(crate) const REMOTE_BESIDE_USER_CODE: Scenario = Scenario {
    script: |world| {
        caches_page_0(world);
        beside(world, uses_page_0, |world| unmap(world, 0));
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
        beside(
            world,
            |world| {
                world.activate(0);
                world.touch(0);
            },
            |world| unmap(world, 0),
        );
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
    catches: &[Fault::LazyReadFirst, Fault::LeaveActiveFirst, Fault::LazyNotToldOfTables],
    ..REMOTE
};

/// Two spaces are made at once. What is cached under the tag of the one may not be used for the other.
pub(crate) const REMOTE_AND_NEW_SPACES: Scenario = Scenario {
    tags: 4,
    script: |world| {
        let tags = Arc::new(Mutex::new(Vec::new()));
        let take_tag = |tags: Arc<Mutex<Vec<_>>>| {
            move |world: &World| {
                let tag = world.coherence.new_space(1).shared_tag();
                tags.lock().unwrap().push(tag.expect("there are four"));
            }
        };
        beside(world, take_tag(tags.clone()), take_tag(tags.clone()));
        let tags = tags.lock().unwrap();
        assert!(tags[0] != tags[1], "{UNSAFE_FRAME}: two spaces are cached under one tag");
    },
    ..REMOTE
};
