//! CPUs enter and leave spaces while others change them.

use coherence::Switches;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// Space 0 on CPU 0 with two pages, and space 1 on CPU 1, which has used space 0 before.
pub(super) fn two_spaces(machine: &SimulatedEnvironment) {
    let [space, other] = [0; 2].map(|_| machine.new_space());
    explorer::as_cpu(0, || {
        machine.activate(space);
        machine.map(pages(PAGE, 2));
        machine.store(PAGE, 7).expect("it is mapped");
        machine.store(NEXT, 7).expect("it is mapped");
    });
    explorer::as_cpu(1, || {
        machine.activate(space);
        machine.store(PAGE, 7).expect("it is mapped");
        machine.store(NEXT, 7).expect("it is mapped");
        machine.activate(other);
    });
}

fn enter_and_use(machine: &SimulatedEnvironment) {
    machine.activate(0);
    let _ = machine.load(PAGE);
    let _ = machine.store(PAGE, 5);
}

pub(in super::super) const ENTER_AND_MUNMAP: Scenario = Scenario {
    name: "enter-and-munmap",
    about: "a CPU switches to a space, and its walker runs ahead, while another one unmaps a page there",
    setup: two_spaces,
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), enter_and_use],
    walked: &[PAGE],
    ..Scenario::BASE
};

pub(in super::super) const ENTER_WITH_A_TAG_AND_MUNMAP: Scenario = Scenario {
    name: "enter-with-a-tag-and-munmap",
    about: "the same, and the CPU still has the page cached under the space's tag",
    tags: 3,
    walked: &[],
    ..Scenario { setup: two_spaces, cpus: ENTER_AND_MUNMAP.cpus, ..Scenario::BASE }
};

pub(in super::super) const SWITCH_BACK_AND_FORTH: Scenario = Scenario {
    name: "switch-back-and-forth",
    about: "a CPU leaves a space and comes back under its tag while another one unmaps one page after the other",
    setup: |machine| {
        two_spaces(machine);
        explorer::as_cpu(1, || machine.activate(0));
    },
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 1));
            machine.unmap(pages(NEXT, 1));
        },
        |machine| {
            machine.activate(1);
            machine.activate(0);
            let _ = machine.load(PAGE);
            let _ = machine.load(NEXT);
        },
    ],
    tags: 3,
    ..Scenario::BASE
};

pub(in super::super) const ENTER_FROM_BORROWING: Scenario = Scenario {
    name: "enter-from-borrowing",
    about: "a CPU that borrows one space enters another one while a page is unmapped there",
    setup: |machine| {
        two_spaces(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: ENTER_AND_MUNMAP.cpus,
    ..Scenario::BASE
};

pub(in super::super) const THREE_SPACES_ON_TWO_TAGS: Scenario = Scenario {
    name: "three-spaces-on-two-tags",
    about: "a CPU switches between more spaces than it has tags: under a tag that was another space's nothing is left",
    setup: |machine| {
        two_spaces(machine);
        machine.new_space();
    },
    cpus: &[
        |machine| machine.unmap(pages(NEXT, 1)),
        |machine| {
            machine.activate(2);
            let _ = machine.load(PAGE);
            machine.activate(0);
            let _ = machine.load(NEXT);
        },
    ],
    tags: 2,
    ..Scenario::BASE
};

pub(in super::super) const FLUSH_OF_ANOTHER_SPACE: Scenario = Scenario {
    name: "flush-of-another-space",
    about: "a CPU flushes a space that it has not loaded: that says nothing about the one that it has",
    setup: |machine| {
        two_spaces(machine);
        explorer::as_cpu(1, || machine.activate(0));
        explorer::as_cpu(0, || {
            machine.activate(1);
            machine.map(pages(PAGE, 1));
            machine.store(PAGE, 3).expect("it is mapped");
        });
        explorer::as_cpu(2, || machine.activate(1));
    },
    cpus: &[
        |machine| {
            machine.drop_pages_of(0, pages(PAGE, 1));
            let _ = machine.load(PAGE);
        },
        |machine| {
            let _ = machine.load(PAGE);
        },
        |machine| machine.unmap(pages(PAGE, 1)),
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const LEAVE_AND_MUNMAP: Scenario = Scenario {
    name: "leave-and-munmap",
    about: "without lazy CPUs: a CPU is told while it only borrows the space, lets go of it, and comes back",
    setup: |machine| {
        two_spaces(machine);
        explorer::as_cpu(1, || machine.activate(0));
        machine.new_object();
    },
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.go_lazy();
            // The kernel thread's work. It is there so that an interrupt can come meanwhile.
            machine.reclaim(0);
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    switches: Switches { lazy: false, ..Switches::DEFAULT },
    ..Scenario::BASE
};
