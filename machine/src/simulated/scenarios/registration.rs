//! Barriers on behalf of all registered processes, while processes register and CPUs come and go: litmus family C.

use coherence::Registration;

use super::super::SimulatedEnvironment;
use super::super::scenario::{Scenario, Script};
use super::super::user::pages;
use super::PAGE;

/// Spaces 0 and 1, with a page each: space 1 on CPU 0, which will ask for a barrier, space 0 on CPU 1.
fn two_processes(machine: &SimulatedEnvironment) {
    let spaces = [0; 2].map(|_| machine.new_space());
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(spaces[1 - cpu]);
            machine.map(pages(PAGE, 1));
            machine.store(PAGE, 7).expect("it is mapped");
        });
    }
}

fn exchange(machine: &SimulatedEnvironment) {
    machine.store(PAGE, 1).expect("it is mapped");
    machine.load(PAGE + 8).expect("it is mapped");
}

const CALLER: Script = |machine| {
    machine.store(PAGE, 1).expect("it is mapped");
    machine.global_barrier();
};

const COUNTED: Scenario = Scenario { crossings: true, ..Scenario::BASE };

pub(in super::super) const REGISTER_AND_GLOBAL_BARRIER: Scenario = Scenario {
    name: "register-and-global-barrier",
    about: "a process registers and goes on without fences, while another one asks for a barrier on behalf of all",
    setup: two_processes,
    cpus: &[CALLER, |machine| {
        machine.register(Registration::Global);
        exchange(machine);
    }],
    ..COUNTED
};

pub(in super::super) const TWO_REGISTER: Scenario = Scenario {
    name: "two-register",
    about: "two threads register their process at once, and one asks for a barrier, while a third runs and knows of nothing",
    setup: |machine| {
        super::remove::shared_page(machine);
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.register(Registration::Global),
        |machine| {
            machine.register(Registration::Global);
            machine.global_barrier();
        },
        exchange,
    ],
    bounds: [1, 1, 2],
    ..COUNTED
};

pub(in super::super) const BETWEEN_REGISTERED_AND_OTHERS: Scenario = Scenario {
    name: "between-registered-and-others",
    about: "a CPU goes from a process that is not registered to one that is, and back, while another one asks for a barrier",
    setup: |machine| {
        two_processes(machine);
        explorer::as_cpu(1, || machine.activate(1));
        explorer::as_cpu(0, || {
            machine.activate(0);
            machine.register(Registration::Global);
            machine.activate(1);
        });
    },
    cpus: &[CALLER, |machine| {
        machine.activate(0);
        exchange(machine);
        machine.activate(1);
        exchange(machine);
    }],
    ..COUNTED
};

pub(in super::super) const A_CHILD_INHERITS: Scenario = Scenario {
    name: "a-child-inherits",
    about: "a registered process forks, and the child runs, while another process asks for a barrier on behalf of all",
    setup: |machine| {
        two_processes(machine);
        explorer::as_cpu(1, || {
            machine.register(Registration::Global);
            machine.fork_registered(pages(PAGE, 1));
        });
    },
    cpus: &[CALLER, |machine| {
        machine.activate(2);
        exchange(machine);
    }],
    ..COUNTED
};
