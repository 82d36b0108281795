//! Pages with equal contents become one, while programs use them.
//!
//! CPU 0 is the kernel's, and runs in no space. Two pages that hold the same are merged; stores to either must not show in the other,
//! and none may be lost.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// One space on the CPUs of `users`, in which the first has made two pages with equal contents.
fn equal_pages(machine: &SimulatedEnvironment, users: std::ops::Range<usize>) {
    let space = machine.new_space();
    for cpu in users.clone() {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == users.start {
                machine.map(pages(PAGE, 2));
                machine.store(PAGE, 7).expect("it is mapped");
                machine.store(NEXT, 7).expect("it is mapped");
            }
        });
    }
}

pub(in super::super) const MERGE_AND_WRITER: Scenario = Scenario {
    name: "merge-and-writer",
    about: "a CPU stores to a page while it is merged with another: it reads its store there, and not in the other",
    setup: |machine| equal_pages(machine, 1..2),
    cpus: &[
        |machine| {
            machine.merge(0, PAGE, NEXT);
        },
        |machine| {
            machine.store(NEXT, 9).expect("it is mapped");
            let [other, own] = [PAGE, NEXT].map(|page| machine.load(page).expect("it is mapped"));
            assert_eq!(own, 9, "D2, write integrity: a store is lost");
            assert_eq!(other, 7, "D2, write integrity: a store shows in another page");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const MERGE_AND_TWO_WRITERS: Scenario = Scenario {
    name: "merge-and-two-writers",
    about: "a CPU stores to a page that is being merged, and so gets a copy, while another one can still store to it: no store is lost",
    setup: |machine| equal_pages(machine, 1..3),
    cpus: &[
        |machine| {
            machine.merge(0, NEXT, PAGE);
        },
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            let seen = machine.load(PAGE).expect("it is mapped");
            assert_eq!(seen, 9, "D2, write integrity: a store is lost");
        },
        |machine| machine.store(PAGE + 8, 8).expect("it is mapped"),
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const MERGE_TWICE_AND_WRITER: Scenario = Scenario {
    name: "merge-twice-and-writer",
    about: "two kernel threads merge a page: the one that finds it unwritable waits for the flush of the one that made it so",
    setup: |machine| equal_pages(machine, 2..3),
    cpus: &[
        |machine| {
            machine.merge(0, PAGE, NEXT);
        },
        |machine| {
            machine.merge(0, PAGE, NEXT);
        },
        |machine| {
            for value in [7, 9] {
                machine.store(NEXT, value).expect("it is mapped");
            }
            let seen = machine.load(NEXT).expect("it is mapped");
            assert_eq!(seen, 9, "D2, write integrity: a store is lost");
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const MERGE_AND_READER: Scenario = Scenario {
    name: "merge-and-reader",
    about: "a CPU reads a page that is merged while another one stores to it: nobody reads the store and then what was before, nor a frame that is free",
    setup: |machine| {
        equal_pages(machine, 1..3);
        explorer::as_cpu(2, || machine.load(NEXT)).expect("it is mapped");
    },
    cpus: &[
        |machine| {
            machine.merge(0, PAGE, NEXT);
        },
        |machine| machine.store(NEXT, 9).expect("it is mapped"),
        |machine| {
            let [first, second] = [0; 2].map(|_| machine.load(NEXT).expect("it is mapped"));
            assert!(first <= second, "D4, one order: it read {first} and then {second}");
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const MERGE_AND_FORK: Scenario = Scenario {
    name: "merge-and-fork",
    about: "a page is shared with a child whose right to write a merge has taken and not flushed: the child's copy does not change",
    setup: |machine| equal_pages(machine, 1..3),
    cpus: &[
        |machine| {
            machine.merge(0, NEXT, PAGE);
        },
        |machine| {
            let child = machine.fork(pages(PAGE, 2));
            machine.activate(child);
            let [first, second] = [0; 2].map(|_| machine.load(PAGE).expect("it is mapped"));
            assert_eq!(first, second, "D2, write integrity: the child's page has changed under it");
        },
        |machine| machine.store(PAGE, 9).expect("it is mapped"),
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const MERGE_AND_MUNMAP: Scenario = Scenario {
    name: "merge-and-munmap",
    about: "both pages are unmapped while they are merged: when the call returns they are gone, and every frame is free in the end",
    setup: |machine| equal_pages(machine, 1..3),
    cpus: &[
        |machine| {
            machine.merge(0, PAGE, NEXT);
        },
        |machine| {
            machine.unmap(pages(PAGE, 2));
            assert!(machine.load(PAGE).is_err() && machine.load(NEXT).is_err(), "the pages are still there");
        },
        |machine| {
            let _ = machine.load(NEXT);
            let _ = machine.store(NEXT, 9);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
