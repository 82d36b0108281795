//! Page tables are freed while walkers may be in them.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// One space on two CPUs. Nothing else is mapped, so with the page its tables go.
fn lonely_page(machine: &SimulatedEnvironment) {
    super::remove::shared_page(machine);
    // What a second space has loaded, for a CPU that switches away.
    machine.new_space();
}

pub(in super::super) const BORROWER_WALKS_FREED_TABLES: Scenario = Scenario {
    name: "borrower-walks-freed-tables",
    about: "a CPU begins to borrow a space while another one frees its tables: the borrower's walker runs on, and is not in them",
    setup: lonely_page,
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), |machine| machine.go_lazy()],
    walked: &[NEXT],
    ..Scenario::BASE
};

pub(in super::super) const USER_WALKS_FREED_TABLES: Scenario = Scenario {
    name: "user-walks-freed-tables",
    about: "a CPU uses a space while another one frees tables there and gives them to a new mapping",
    setup: lonely_page,
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 1));
            machine.map(pages(NEXT, 1));
            machine.store(NEXT, 4).expect("it is mapped");
        },
        |machine| {
            let _ = machine.load(PAGE);
            let _ = machine.load(NEXT);
        },
    ],
    walked: &[NEXT],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const COMING_BACK_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    name: "coming-back-while-tables-are-freed",
    about: "a CPU comes back from borrowing a space while another one frees its tables",
    setup: |machine| {
        lonely_page(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    walked: &[NEXT],
    ..Scenario::BASE
};

pub(in super::super) const SWITCHING_AWAY_WHILE_TABLES_ARE_FREED: Scenario = Scenario {
    name: "switching-away-while-tables-are-freed",
    about: "a CPU switches to another space while another one frees the tables of the first",
    setup: lonely_page,
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), |machine| machine.activate(1)],
    walked: &[NEXT],
    ..Scenario::BASE
};

/// Where the table goes that was freed: a page under another leaf table, in whose place it is the same as `PAGE`.
const HEIR: u64 = PAGE + (4 << 20);
/// A page under a third one, for which the upper tables stay.
const NEIGHBOUR: u64 = PAGE + (8 << 20);

pub(in super::super) const MUNMAP_AND_EVICTION: Scenario = Scenario {
    name: "munmap-and-eviction",
    about: "a page is unmapped, with its table, while a kernel thread looks for it there by the reverse way: it changes nothing in what \
            that table becomes",
    setup: |machine| {
        let space = machine.new_space();
        explorer::as_cpu(0, || {
            machine.activate(space);
            for page in [PAGE, NEIGHBOUR] {
                machine.map(pages(page, 1));
                machine.store(page, 7).expect("it is mapped");
            }
            machine.map(pages(HEIR, 1));
        });
    },
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 1));
            // The table that was freed last is the next one, and the page after that the next page.
            machine.load(HEIR).expect("it is mapped");
            machine.store(HEIR, 9).expect("it is mapped");
            let seen = machine.load(HEIR).expect("it is mapped");
            assert_eq!(seen, 9, "D2, write integrity: a store is lost");
        },
        |machine| machine.evict(0, &[PAGE]),
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
