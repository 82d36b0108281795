//! CPUs with upper page tables of their own, who find the program's leaf tables one by one.

use coherence::Switches;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

const BASE: Scenario = Scenario {
    setup: |machine| found_by(machine, 1),
    switches: Switches { sharers: true, ..Switches::DEFAULT },
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

/// One space on two CPUs with tables of their own. CPU 0 has stored to two pages, and the first so many CPUs have found their table.
fn found_by(machine: &SimulatedEnvironment, finders: usize) {
    let space = machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, 2));
                machine.part(2);
                machine.store(PAGE, 7).expect("it is mapped");
                machine.store(NEXT, 6).expect("it is mapped");
            } else if cpu < finders {
                machine.load(PAGE).expect("it is mapped");
            }
        });
    }
}

/// As `found_by` 1, where both CPUs had found everything before they had tables of their own. CPU 1 is elsewhere now.
fn found_before(machine: &SimulatedEnvironment) {
    let (space, other) = (machine.new_space(), machine.new_space());
    for cpu in [1, 0] {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 1 {
                machine.map(pages(PAGE, 2));
                machine.store(PAGE, 7).expect("it is mapped");
                machine.activate(other);
            } else {
                machine.part(2);
            }
        });
    }
}

/// The page is there or is not, and if it was gone once it does not come back.
fn look_twice(machine: &SimulatedEnvironment) {
    let first = machine.load(PAGE);
    let second = machine.load(PAGE);
    let words = [first, second].map(|word| word.expect("it is mapped"));
    assert!([[7, 7], [7, 0], [0, 0]].contains(&words), "{words:?}");
}

pub(in super::super) const SHARER_AND_DROP: Scenario = Scenario {
    name: "sharer-and-drop",
    about: "a CPU finds a table while another one drops a page of it",
    cpus: &[|machine| machine.drop_pages(pages(PAGE, 1)), look_twice],
    walked: &[PAGE],
    ..BASE
};

pub(in super::super) const SHARER_AND_OWNER: Scenario = Scenario {
    name: "sharer-and-owner",
    about: "a CPU alone has found a table, and drops a page of it without a word to the other one, which finds it meanwhile",
    cpus: &[
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            assert_eq!(machine.load(PAGE), Ok(0), "what was dropped is back");
            machine.store(PAGE, 8).expect("it is mapped");
        },
        |machine| {
            machine.load(NEXT).expect("it is mapped");
            machine.load(PAGE).expect("it is mapped");
        },
    ],
    bounds: [1, 2, 3],
    ..BASE
};

pub(in super::super) const SHARER_AND_MUNMAP: Scenario = Scenario {
    name: "sharer-and-munmap",
    about: "two CPUs have found a table, which goes with all that it maps; its addresses are mapped anew",
    setup: |machine| found_by(machine, 2),
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 2));
            machine.map(pages(PAGE, 1));
            machine.store(PAGE, 9).expect("it is mapped");
        },
        |machine| {
            if let Ok(word) = machine.load(PAGE) {
                assert!([7, 0, 9].contains(&word), "{word}");
            }
            let _ = machine.load(PAGE);
        },
    ],
    bounds: [1, 2, 3],
    ..BASE
};

pub(in super::super) const SHARER_AND_FORK: Scenario = Scenario {
    name: "sharer-and-fork",
    about: "a process forks while a CPU that has just found its table stores to a page: the child has what it had, or what it has now",
    cpus: &[
        |machine| {
            let child = machine.fork(pages(PAGE, 2));
            machine.activate(child);
            let word = machine.load(PAGE).expect("it is mapped");
            assert!([7, 9].contains(&word), "{word}");
        },
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            assert_eq!(machine.load(PAGE), Ok(9), "D2, write integrity: a store is lost");
        },
    ],
    ..BASE
};

pub(in super::super) const SHARER_OF_ALL: Scenario = Scenario {
    name: "sharer-of-all",
    about: "a CPU that had found all tables comes back to the space, with tables of its own, while a page is dropped",
    setup: found_before,
    cpus: &[
        |machine| machine.drop_pages(pages(PAGE, 1)),
        |machine| {
            machine.activate(0);
            look_twice(machine);
        },
    ],
    tags: 3,
    ..BASE
};
