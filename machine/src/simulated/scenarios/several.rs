//! Several CPUs change one space at the same time.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// A page under another leaf table than `PAGE`: two CPUs may drop the two at the same time.
pub(super) const FAR: u64 = PAGE + (4 << 20);

/// One space on all CPUs, two pages that each of them has stored to.
pub(super) fn two_pages(machine: &SimulatedEnvironment, cpus: usize, other: u64) {
    let space = machine.new_space();
    for cpu in 0..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, 1));
                machine.map(pages(other, 1));
            }
            machine.store(PAGE, 7).expect("it is mapped");
            machine.store(other, 7).expect("it is mapped");
        });
    }
}

pub(in super::super) const TWO_DROP_THE_SAME_PAGE: Scenario = Scenario {
    name: "two-drop-the-same-page",
    about: "two CPUs drop overlapping ranges: whoever finds a page gone already may not return while it can still be read",
    setup: |machine| two_pages(machine, 2, NEXT),
    cpus: &[
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            let seen = machine.load(PAGE).expect("it is mapped");
            assert_eq!(seen, 0, "the page that was dropped still has {seen}");
        },
        |machine| {
            machine.drop_pages(pages(PAGE, 2));
            let seen = machine.load(PAGE).expect("it is mapped");
            assert_eq!(seen, 0, "the page that was dropped still has {seen}");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const TWO_DROP_AND_ONE_READS: Scenario = Scenario {
    name: "two-drop-and-one-reads",
    about: "two CPUs drop a page each while a third one uses both: one flush may serve both requests, and must serve each",
    setup: |machine| two_pages(machine, 3, FAR),
    cpus: &[
        |machine| machine.drop_pages(pages(PAGE, 1)),
        |machine| machine.drop_pages(pages(FAR, 1)),
        |machine| {
            let _ = machine.load(PAGE);
            let _ = machine.load(FAR);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const TWO_DROP_AND_ONE_COMES_BACK: Scenario = Scenario {
    name: "two-drop-and-one-comes-back",
    about: "two CPUs drop a page each while a third one comes back from borrowing the space",
    setup: |machine| {
        two_pages(machine, 3, FAR);
        explorer::as_cpu(2, || machine.go_lazy());
    },
    cpus: &[
        |machine| machine.drop_pages(pages(PAGE, 1)),
        |machine| machine.drop_pages(pages(FAR, 1)),
        |machine| {
            machine.activate(0);
            let _ = machine.load(PAGE);
            let _ = machine.load(FAR);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
