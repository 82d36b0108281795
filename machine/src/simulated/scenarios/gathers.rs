//! Operations on one space that meet half done: one has taken entries out and has not flushed, and the other finds them gone.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::small_kernel::{BASE, TABLE};
use super::super::user::pages;

/// A page of the small kernel's, its neighbour, and one under another leaf table.
const FIRST: u64 = BASE;
const SECOND: u64 = BASE + memory::PAGE_SIZE;
const FAR: u64 = BASE + TABLE;

/// One space on all CPUs, and pages that each of them has stored to.
fn used(machine: &SimulatedEnvironment, cpus: usize, addresses: &[u64]) {
    let space = machine.new_space();
    for cpu in 0..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            for address in addresses {
                machine.store(*address, 7).expect("it is mapped");
            }
        });
    }
}

/// What was dropped cannot be seen.
fn finds_zero(machine: &SimulatedEnvironment, address: u64) {
    let seen = machine.load(address).expect("it is mapped");
    assert_eq!(seen, 0, "the page that was dropped still has {seen}");
}

pub(in super::super) const GATHERS_THAT_MEET: Scenario = Scenario {
    name: "gathers-that-meet",
    about: "two CPUs drop a page: whoever finds it gone already may not return while it can still be read",
    setup: |machine| used(machine, 2, &[FIRST, SECOND]),
    cpus: &[
        |machine| {
            machine.small_drop(pages(FIRST, 1), true);
            finds_zero(machine, FIRST);
        },
        |machine| {
            machine.small_drop(pages(FIRST, 1), true);
            finds_zero(machine, FIRST);
        },
    ],
    bounds: [2, 3, 3],
    ..Scenario::BASE
};

pub(in super::super) const GATHERS_THAT_NAME_NOTHING: Scenario = Scenario {
    name: "gathers-that-name-nothing",
    about: "two CPUs drop overlapping ranges without saying what they are about, while a third one reads",
    setup: |machine| used(machine, 3, &[FIRST, SECOND]),
    cpus: &[
        |machine| machine.small_drop(pages(FIRST, 1), false),
        |machine| {
            machine.small_drop(pages(FIRST, 2), false);
            finds_zero(machine, SECOND);
        },
        |machine| {
            let _ = machine.load(FIRST);
            let _ = machine.load(SECOND);
        },
    ],
    bounds: [1, 2, 2],
    ..Scenario::BASE
};

pub(in super::super) const SHARED_AND_REPLACED: Scenario = Scenario {
    name: "shared-and-replaced",
    about: "a CPU puts another frame in the place of a page whose entry another one has just made unused, and not flushed: nobody reads or \
            writes the old one any more",
    setup: |machine| used(machine, 3, &[FIRST, SECOND]),
    cpus: &[
        |machine| machine.small_share(pages(FIRST, 1)),
        |machine| machine.small_replace(FIRST),
        |machine| {
            let _ = machine.load(FIRST);
        },
    ],
    bounds: [1, 2, 2],
    ..Scenario::BASE
};

pub(in super::super) const GATHERS_AND_FREED_TABLES: Scenario = Scenario {
    name: "gathers-and-freed-tables",
    about: "a CPU drops a page while another one, which meets it, drops a whole table; a third only borrows the space, and its \
            walker runs on",
    setup: |machine| {
        used(machine, 3, &[FIRST, FAR]);
        explorer::as_cpu(2, || machine.go_lazy());
    },
    cpus: &[
        |machine| machine.small_drop(pages(FIRST, 1), true),
        |machine| machine.small_drop(pages(FAR, 1), true),
        |_| (),
    ],
    walked: &[FAR + memory::PAGE_SIZE],
    bounds: [1, 2, 2],
    ..Scenario::BASE
};
