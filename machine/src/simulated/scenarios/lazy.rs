//! CPUs that only borrow a space, and come back to it.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::remove::shared_page;

fn come_back_and_use(machine: &SimulatedEnvironment) {
    machine.activate(0);
    let _ = machine.load(PAGE);
    let _ = machine.store(PAGE, 5);
}

pub(in super::super) const BORROW_AND_MUNMAP: Scenario = Scenario {
    name: "borrow-and-munmap",
    about: "a CPU begins to borrow a space and comes back to it while another one unmaps a page there",
    setup: shared_page,
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.go_lazy();
            come_back_and_use(machine);
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const COME_BACK_AND_MUNMAP: Scenario = Scenario {
    name: "come-back-and-munmap",
    about: "a CPU comes back from borrowing a space, and its walker runs ahead, while another one unmaps a page there",
    setup: |machine| {
        shared_page(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), come_back_and_use],
    walked: &[PAGE],
    bounds: [4, 5, 6],
    ..Scenario::BASE
};
