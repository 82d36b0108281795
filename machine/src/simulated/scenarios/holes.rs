//! Holes are punched into an object that programs have mapped.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::batch::{self, read_twice_unless_gone};

/// As `batch::stored`, and on CPU 0 another space, in which nothing is mapped.
fn stored(machine: &SimulatedEnvironment, cpus: usize) {
    batch::stored(machine, cpus);
    let other = machine.new_space();
    explorer::as_cpu(0, || machine.activate(other));
}

pub(in super::super) const HOLE_AND_READER: Scenario = Scenario {
    name: "hole-and-reader",
    about: "a hole is punched where a CPU reads, and faults again: when the call returns there are zeroes, in the same frame for everybody",
    setup: |machine| stored(machine, 2),
    cpus: &[
        |machine| {
            machine.punch(0, 0, pages(PAGE, 1));
            assert_eq!(
                machine.read_object(0, 0),
                0,
                "D3, linearizable returns: the hole holds what was there before"
            );
        },
        |machine| {
            let first = machine.load(PAGE).expect("it is mapped");
            let second = machine.load(PAGE).expect("it is mapped");
            assert!([7, 0].contains(&first) && second <= first, "the page had {first}, and then {second}");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const HOLE_AND_WRITER: Scenario = Scenario {
    name: "hole-and-writer",
    about: "a hole is punched where one CPU stores anew and another one reads: nobody sees the new page and then the old one",
    setup: |machine| stored(machine, 3),
    cpus: &[
        |machine| machine.punch(0, 0, pages(PAGE, 1)),
        |machine| machine.store(PAGE, 9).expect("it is mapped"),
        |machine| {
            for _ in 0..2 {
                machine.load(PAGE).expect("it is mapped");
            }
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

/// Another place where `stored`'s space shows the same page.
const ELSEWHERE: u64 = PAGE + 16 * memory::PAGE_SIZE;

pub(in super::super) const HOLE_AND_FIRST_USE: Scenario = Scenario {
    name: "hole-and-first-use",
    about: "a hole is punched while a CPU faults its page in at another address: both addresses show the same page ever after",
    setup: |machine| {
        stored(machine, 2);
        explorer::as_cpu(1, || machine.map_object(0, 0, pages(ELSEWHERE, 1), true));
    },
    cpus: &[
        |machine| {
            machine.punch(0, 0, pages(PAGE, 1));
            let seen = machine.read_object(0, 0);
            assert!([0, 9].contains(&seen), "D3, linearizable returns: the hole holds {seen}");
        },
        |machine| {
            machine.store(ELSEWHERE, 9).expect("it is mapped");
            let there = machine.load(PAGE).expect("it is mapped");
            let here = machine.load(ELSEWHERE).expect("it is mapped");
            let agree = [0, 9].contains(&there) && here <= there;
            assert!(agree, "D4, one order: the page holds {there} at one address and then {here} at another");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const HOLE_AND_MUNMAP: Scenario = Scenario {
    name: "hole-and-munmap",
    about: "a hole is punched where munmap has emptied an entry and not flushed: when the call returns nobody reads the old page",
    setup: |machine| stored(machine, 3),
    cpus: &[
        |machine| machine.punch(0, 0, pages(PAGE, 1)),
        |machine| machine.unmap(pages(PAGE, 1)),
        read_twice_unless_gone,
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const TWO_HOLES_AND_CALLS: Scenario = Scenario {
    name: "two-holes-and-calls",
    about: "two CPUs punch the same hole, one of them through its mapping, and another reads and writes the object by calls",
    setup: |machine| stored(machine, 3),
    cpus: &[
        |machine| machine.punch(0, 0, pages(PAGE, 1)),
        |machine| machine.remove(pages(PAGE, 1)),
        |machine| {
            machine.write_object(0, 0, 9);
            let seen = machine.load(PAGE).expect("it is mapped");
            assert!([0, 9].contains(&seen), "what was written by a call is mapped as {seen}");
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
