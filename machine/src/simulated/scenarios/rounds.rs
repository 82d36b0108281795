//! Several threads ask for barriers at once: one round serves those that came before it began, and no others.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::PAGE;

/// One space on all CPUs, with a page that each of them has stored to.
fn threads(machine: &SimulatedEnvironment, cpus: usize) {
    super::remove::shared_page(machine);
    for cpu in 2..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    }
}

fn call(machine: &SimulatedEnvironment) {
    machine.store(PAGE + 8, 1).expect("it is mapped");
    machine.barrier();
    machine.load(PAGE + 16).expect("it is mapped");
}

fn exchange(machine: &SimulatedEnvironment) {
    machine.store(PAGE + 16, 1).expect("it is mapped");
    machine.load(PAGE + 8).expect("it is mapped");
}

pub(in super::super) const TWO_CALLERS: Scenario = Scenario {
    name: "two-callers",
    about: "two threads ask for a barrier at once, and a third comes from the kernel: a round that began before serves nobody",
    setup: |machine| threads(machine, 3),
    cpus: &[
        call,
        |machine| machine.barrier(),
        |machine| {
            machine.system_call(|| ());
            exchange(machine);
        },
    ],
    crossings: true,
    bounds: [2, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const A_STORM: Scenario = Scenario {
    name: "a-storm-of-barriers",
    about: "three threads ask for a barrier at once: a fourth is interrupted no more often than if one had asked after the other, \
            and asked for one barrier at a time",
    setup: |machine| threads(machine, 4),
    cpus: &[|machine| machine.barrier(), |machine| machine.barrier(), |machine| machine.barrier(), exchange],
    crossings: true,
    bounds: [1, 1, 2],
    ..Scenario::BASE
};
