//! Interrupts that cannot be masked come in the middle of a switch, and their handler reads the program's memory.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
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
