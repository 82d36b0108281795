//! Guards against stores on pages of an object, which a space shows shared: they outlive the page's being mapped.
//!
//! CPU 0 is of a space that maps nothing, and takes pages away by the reverse way; CPU 1 is the monitor's; CPU 2 stores.

use memory::Watch;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::address::must;
use super::{NEXT, PAGE};

/// An object, its first page mapped shared at `PAGE` on CPUs 1 and 2, and watched for stores. CPU 1 does `first` before CPU 2 comes, whom
/// nobody need tell anything then.
fn watched(machine: &SimulatedEnvironment, first: fn(&SimulatedEnvironment)) {
    let (space, object, other) = (machine.new_space(), machine.new_object(), machine.new_space());
    explorer::as_cpu(0, || machine.activate(other));
    explorer::as_cpu(1, || {
        machine.activate(space);
        machine.map_object(object, 0, pages(PAGE, 1), true);
        machine.watch(pages(PAGE, 1), Watch::STORES);
        first(machine);
    });
    explorer::as_cpu(2, || machine.activate(space));
}

/// As `watched`, after stores by both.
fn stored(machine: &SimulatedEnvironment) {
    let store = |machine: &SimulatedEnvironment| machine.store(PAGE, 7).expect("it is mapped");
    watched(machine, store);
    explorer::as_cpu(2, || store(machine));
}

/// As `watched`, and guarded after a store.
fn guarded(machine: &SimulatedEnvironment) {
    watched(machine, |machine| {
        machine.store(PAGE, 7).expect("it is mapped");
        machine.guard(pages(PAGE, 1));
    });
    explorer::as_cpu(2, || {
        machine.load(PAGE).expect("it is mapped");
    });
}

/// What the monitor finds while the page is guarded, twice. Nobody has stored 9.
fn look(machine: &SimulatedEnvironment) {
    for _ in 0..2 {
        let seen = machine.load(PAGE).expect("it is mapped");
        must(seen != 9, "a page has been guarded, and was stored to");
    }
}

/// What a monitor does that takes a snapshot: guards, looks, and lets stores go on.
fn snapshot(machine: &SimulatedEnvironment) {
    machine.guard(pages(PAGE, 1));
    let [first, second] = [0; 2].map(|_| machine.load(PAGE).expect("it is mapped"));
    must(first == second, "a page has been guarded, and has changed");
    machine.unguard(pages(PAGE, 1));
}

fn store(machine: &SimulatedEnvironment) {
    machine.store(PAGE, 9).expect("it is mapped");
}

/// Looks, beside a store that waits for the end of the guard.
const LOOK: Scenario = Scenario {
    setup: guarded,
    cpus: &[
        |_| (),
        |machine| {
            look(machine);
            machine.unguard(pages(PAGE, 1));
        },
        store,
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const GUARDED_PAGE_AND_HOLE: Scenario = Scenario {
    name: "guarded-page-and-hole",
    about: "a hole is punched where a page is guarded, and another CPU stores: the page that comes in the hole is guarded",
    cpus: &[|machine| machine.punch(0, 0, pages(PAGE, 1)), LOOK.cpus[1], LOOK.cpus[2]],
    ..LOOK
};

pub(in super::super) const GUARDED_PAGE_AND_RECLAIM: Scenario = Scenario {
    name: "guarded-page-and-reclaim",
    about: "a guarded page is taken back, or taken out and stays, and another CPU stores: it comes back guarded",
    cpus: &[|machine| machine.reclaim(0), LOOK.cpus[1], LOOK.cpus[2]],
    ..LOOK
};

pub(in super::super) const GUARDED_PAGE_AND_CLEANING: Scenario = Scenario {
    name: "guarded-page-and-cleaning",
    about: "a guarded page is written out, which takes the right to write too, and another CPU stores: who gives that back asks for guards",
    cpus: &[|machine| machine.write_out(0), LOOK.cpus[1], LOOK.cpus[2]],
    ..LOOK
};

pub(in super::super) const GUARDED_PAGE_DROPPED: Scenario = Scenario {
    name: "guarded-page-dropped",
    about: "a mapping drops a guarded page, which the object still has, and another CPU stores: it comes back guarded",
    cpus: &[
        |_| (),
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            LOOK.cpus[1](machine);
        },
        store,
    ],
    ..LOOK
};

pub(in super::super) const GUARDED_PAGE_AND_TRUNCATE: Scenario = Scenario {
    name: "guarded-page-and-truncate",
    about: "the object is cut off under a guarded page and grows again, and another CPU stores: the page that comes is guarded",
    setup: |machine| {
        guarded(machine);
        machine.refuse_guarded_stores();
    },
    cpus: &[
        |machine| {
            machine.truncate(0, 0, pages(PAGE, 1));
            machine.grow(0);
        },
        |machine| {
            for _ in 0..2 {
                must(machine.load(PAGE) != Ok(9), "a page has been guarded, and was stored to");
            }
        },
        |machine| {
            for _ in 0..2 {
                must(machine.store(PAGE, 9).is_err(), "a page has been guarded, and can be stored to");
            }
        },
    ],
    ..LOOK
};

pub(in super::super) const GUARD_OF_AN_ABSENT_PAGE_AND_WRITER: Scenario = Scenario {
    name: "guard-of-an-absent-page-and-writer",
    about: "a page that is not there is guarded while another CPU's store brings it in: the store comes before the guard, or waits",
    setup: |machine| watched(machine, |_| ()),
    cpus: &[|_| (), snapshot, store],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const GUARD_BESIDE_RECLAIM: Scenario = Scenario {
    name: "guard-beside-reclaim",
    about: "a page is guarded whose entry has been emptied and not flushed: when the call returns nobody stores through what it was",
    setup: stored,
    cpus: &[|machine| machine.reclaim(0), snapshot, store],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const GUARD_OF_A_SHARED_PAGE_AND_FORK: Scenario = Scenario {
    name: "guard-of-a-shared-page-and-fork",
    about: "a page of an object is guarded while its space forks, and another CPU stores: the parent's guard stands",
    setup: stored,
    cpus: &[
        |machine| {
            machine.activate(0);
            // What fork promises, that stores stay away from what the child has, is of private pages.
            machine.fork(pages(NEXT, 1));
        },
        snapshot,
        store,
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
