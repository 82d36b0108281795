//! Private pages go to swap and come back, while programs use them.
//!
//! CPU 0 is the kernel's, and runs in no space.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// One space on the CPUs from 1 on, whose first has stored to two pages, and a disk of so many slots.
fn with_slots(machine: &SimulatedEnvironment, cpus: usize, slots: u32) {
    machine.add_swap(slots);
    let space = machine.new_space();
    for cpu in 1..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 1 {
                machine.map(pages(PAGE, 2));
                machine.store(PAGE, 7).expect("it is mapped");
                machine.store(NEXT, 6).expect("it is mapped");
            }
        });
    }
}

/// The two pages hold this.
fn expect(machine: &SimulatedEnvironment, wanted: [u64; 2]) {
    let found = [PAGE, NEXT].map(|page| machine.load(page).expect("it is mapped"));
    if found != wanted {
        explorer::fail(format!(
            "D2, write integrity: the pages hold {found:?}, and {wanted:?} was stored to them"
        ));
    }
}

pub(in super::super) const SWAP_AND_WRITER: Scenario = Scenario {
    name: "swap-and-writer",
    about: "a CPU stores to a page while it goes to swap: it finds its store, wherever the page is",
    setup: |machine| with_slots(machine, 2, 2),
    cpus: &[
        |machine| machine.page_out(0, pages(PAGE, 1)),
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            expect(machine, [9, 6]);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const SWAP_AND_DROP: Scenario = Scenario {
    name: "swap-and-drop",
    about: "a page is dropped while it goes to swap: nothing of it comes back, and its slot is free",
    setup: |machine| with_slots(machine, 2, 2),
    cpus: &[
        |machine| machine.page_out(0, pages(PAGE, 2)),
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            assert_eq!(machine.load(PAGE), Ok(0), "what was dropped is back");
            assert_eq!(machine.load(NEXT), Ok(6), "D2, write integrity: a store is lost");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const SWAP_TWICE_INTO_ONE_SLOT: Scenario = Scenario {
    name: "swap-twice-into-one-slot",
    about: "a page comes back while it is still written to the only slot, and another one is to go there: each holds what was stored to it",
    setup: |machine| with_slots(machine, 2, 1),
    cpus: &[
        |machine| machine.page_out(0, pages(PAGE, 1)),
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            machine.page_out(0, pages(NEXT, 1));
            expect(machine, [9, 6]);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const SWAP_AND_FORK: Scenario = Scenario {
    name: "swap-and-fork",
    about: "a process forks while a page of it goes to swap, and the child drops the page: the parent has it still",
    setup: |machine| with_slots(machine, 2, 1),
    cpus: &[
        |machine| machine.page_out(0, pages(PAGE, 1)),
        |machine| {
            let child = machine.fork(pages(PAGE, 1));
            machine.activate(child);
            machine.drop_pages(pages(PAGE, 1));
            machine.activate(0);
            machine.page_out(0, pages(NEXT, 1));
            expect(machine, [7, 6]);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
