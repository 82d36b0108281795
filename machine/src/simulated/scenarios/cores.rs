//! Code that changes while other CPUs run it: barriers after which instructions are fetched anew.
//!
//! The writer stores a new version of an instruction, asks for a barrier for cores, and says so in a word of data. Whoever
//! finds the word there executes the new version.

use coherence::Registration;

use super::super::SimulatedEnvironment;
use super::super::scenario::{Scenario, Script};
use super::PAGE;

/// The instruction that changes from version 1 to 2, and the word that says that it has.
pub(super) const CODE: u64 = PAGE + 16;
const DONE: u64 = PAGE;

/// Space 0, registered for barriers for cores, on two CPUs that have both executed the first version.
pub(super) fn code(machine: &SimulatedEnvironment) {
    machine.new_space();
    machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(0);
            if cpu == 0 {
                machine.map_code(CODE, 1);
                machine.register(Registration::Cores);
            }
            machine.store(DONE, 0).expect("it is mapped");
            machine.execute(CODE);
        });
    }
}

fn modify(machine: &SimulatedEnvironment) {
    machine.store(CODE, 2).expect("it is mapped");
    machine.core_barrier();
    machine.store(DONE, 1).expect("it is mapped");
    assert_eq!(machine.execute(CODE), 2, "the caller executes what it has replaced");
}

pub(super) fn execute(machine: &SimulatedEnvironment) {
    let is_done = machine.load(DONE).expect("it is mapped") == 1;
    let version = machine.execute(CODE);
    assert!(!is_done || version == 2, "version {version} is executed after the barrier");
}

const SETTING: Scenario = Scenario { crossings: true, code: &[CODE], ..Scenario::BASE };
pub(super) const MODIFY: Script = modify;

pub(in super::super) const CODE_BESIDE_USER_CODE: Scenario = Scenario {
    name: "code-and-user-code",
    about: "a thread changes code that another one executes",
    setup: code,
    cpus: &[MODIFY, |machine| {
        execute(machine);
        execute(machine);
    }],
    ..SETTING
};

pub(in super::super) const CODE_AND_SYSTEM_CALL: Scenario = Scenario {
    name: "code-and-system-call",
    about: "a thread changes code while the CPU of another one comes back from the kernel, which does not make it fetch anew",
    setup: code,
    cpus: &[MODIFY, |machine| {
        machine.system_call(|| ());
        execute(machine);
    }],
    ..SETTING
};

pub(in super::super) const CODE_AND_SWITCHING_IN: Scenario = Scenario {
    name: "code-and-switching-in",
    about: "a thread changes code while another one's CPU comes back from another process, with what it fetched before",
    setup: |machine| {
        code(machine);
        explorer::as_cpu(1, || machine.activate(1));
    },
    cpus: &[MODIFY, |machine| {
        machine.activate(0);
        execute(machine);
    }],
    ..SETTING
};

pub(in super::super) const CODE_AND_COMING_BACK: Scenario = Scenario {
    name: "code-and-coming-back",
    about: "the same, and its CPU comes back from borrowing the space",
    setup: |machine| {
        code(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[MODIFY, |machine| {
        machine.activate(0);
        execute(machine);
    }],
    ..SETTING
};
