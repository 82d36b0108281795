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
