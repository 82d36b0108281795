//! Barriers for restartable sequences, whose threads start again, wherever their CPU is at that moment.

use coherence::Registration;

use super::super::SimulatedEnvironment;
use super::super::scenario::{Scenario, Script};
use super::super::sequence::Disturbance;
use super::super::user::pages;
use super::PAGE;

/// What the sequences add to.
const COUNT: u64 = PAGE + 8;

/// Space 0, registered for barriers for sequences, on so many CPUs.
fn registered(machine: &SimulatedEnvironment, cpus: usize) {
    let space = machine.new_space();
    for cpu in 0..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.register(Registration::Sequences);
                machine.map(pages(PAGE, 1));
            }
            machine.store(PAGE, 1).expect("it is mapped");
        });
    }
}

const CALLER: Script = |machine| {
    machine.store(PAGE, 2).expect("it is mapped");
    machine.sequence_barrier();
    machine.load(COUNT).expect("it is mapped");
};

const COUNTED: Scenario = Scenario { crossings: true, ..Scenario::BASE };

pub(in super::super) const SEQUENCE_AND_USER_CODE: Scenario = Scenario {
    name: "sequence-and-user-code",
    about: "a thread runs sequences while another one asks for a barrier: none that began before commits afterwards",
    setup: |machine| registered(machine, 2),
    cpus: &[CALLER, |machine| {
        machine.add_in_sequence(COUNT, Disturbance::None);
        machine.add_in_sequence(COUNT, Disturbance::None);
    }],
    ..COUNTED
};

pub(in super::super) const SEQUENCE_AND_TICK: Scenario = Scenario {
    name: "sequence-and-tick",
    about: "the same, with a timer interrupt in the middle of the sequence, which goes on where it was",
    setup: |machine| registered(machine, 2),
    cpus: &[CALLER, |machine| machine.add_in_sequence(COUNT, Disturbance::Tick)],
    ..COUNTED
};

pub(in super::super) const SEQUENCE_AND_COMING_BACK: Scenario = Scenario {
    name: "sequence-and-coming-back",
    about: "a thread runs a sequence, its CPU borrows the space for a while, and it runs another one",
    setup: |machine| registered(machine, 2),
    cpus: &[CALLER, |machine| {
        machine.add_in_sequence(COUNT, Disturbance::None);
        machine.go_lazy();
        machine.activate(0);
        machine.add_in_sequence(COUNT, Disturbance::None);
    }],
    ..COUNTED
};

pub(in super::super) const SEQUENCES_ON_ONE_CPU: Scenario = Scenario {
    name: "sequences-on-one-cpu",
    about: "two threads ask for barriers at once, each for sequences of another CPU: neither's round serves the other",
    setup: |machine| registered(machine, 3),
    cpus: &[
        |machine| machine.add_in_sequence(COUNT, Disturbance::None),
        |machine| machine.sequence_barrier_on(0),
        |machine| machine.sequence_barrier_on(1),
    ],
    bounds: [2, 2, 3],
    ..COUNTED
};
