//! Interrupts that cannot be masked come in the middle of a switch, and their handler reads the program's memory.

use coherence::Switches;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::batch::mapped;
use super::{PAGE, switch};

/// Both CPUs in space 0, of which two pages are mapped: when one goes, no table does.
fn two_pages(machine: &SimulatedEnvironment) {
    switch::two_spaces(machine);
    explorer::as_cpu(1, || {
        machine.activate(0);
        machine.store(PAGE, 7).expect("it is mapped");
    });
}

pub(in super::super) const NMI_AND_SWITCH: Scenario = Scenario {
    name: "nmi-and-switch",
    about: "a CPU leaves a space for another one, and comes back, while a page is unmapped there, and is sampled at any step",
    setup: two_pages,
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.activate(1);
            machine.activate(0);
        },
    ],
    tags: 3,
    sampled: Some((1, PAGE)),
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const NMI_AND_COMING_BACK: Scenario = Scenario {
    name: "nmi-and-coming-back",
    about: "a CPU begins to borrow a space, and comes back, while a page is unmapped there, and is sampled at any step",
    setup: two_pages,
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.go_lazy();
            machine.activate(0);
        },
    ],
    sampled: Some((1, PAGE)),
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const NMI_AND_BORROWER: Scenario = Scenario {
    name: "nmi-and-borrower",
    about: "a CPU comes back to a space that it borrows, where a page has been unmapped meanwhile, and is sampled at any step",
    setup: |machine| {
        two_pages(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), |machine| machine.activate(0)],
    sampled: Some((1, PAGE)),
    ..Scenario::BASE
};

pub(in super::super) const NMI_AND_RECLAIM: Scenario = Scenario {
    name: "nmi-and-reclaim",
    about: "without lazy CPUs: a CPU comes back to a space that it borrows, of which a page has been taken back meanwhile, and is sampled \
            at any step",
    setup: |machine| {
        mapped(machine, 2, true);
        machine.new_object();
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            // A kernel thread's work. It is there so that an interrupt can come meanwhile.
            machine.reclaim(1);
            machine.activate(0);
        },
    ],
    switches: Switches { lazy: false, ..Switches::DEFAULT },
    sampled: Some((1, PAGE)),
    bounds: [3, 3, 4],
    ..Scenario::BASE
};
