//! Pages are taken away from a program that uses them on another CPU.

use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;

/// One space on two CPUs, a page that both have stored to.
pub(in super::super) fn shared_page(machine: &super::super::SimulatedEnvironment) {
    let space = machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, 1));
            }
            machine.store(PAGE, 7).expect("it is mapped");
        });
    }
}

pub(in super::super) const MUNMAP_AND_READER: Scenario = Scenario {
    name: "munmap-and-reader",
    about: "a CPU reads a page, over and over, while another one unmaps it",
    setup: shared_page,
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            for _ in 0..2 {
                if machine.load(PAGE).is_err() {
                    return;
                }
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const MUNMAP_AND_WRITER: Scenario = Scenario {
    name: "munmap-and-writer",
    about: "a CPU stores to a page while another one unmaps it and maps zeroes there: no store lands in what was freed",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 1));
            machine.map(pages(PAGE, 1));
        },
        |machine| {
            for value in 1..3 {
                if machine.store(PAGE, value).is_err() {
                    return;
                }
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const DONTNEED_AND_WRITER: Scenario = Scenario {
    name: "dontneed-and-writer",
    about: "a CPU stores to a page and reads it again while another one drops it: its own store or zeroes, nothing else",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            let seen = machine.load(PAGE).expect("it is mapped");
            assert!([0, 9].contains(&seen), "the dropped page still has {seen}");
        },
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            let seen = machine.load(PAGE).expect("it is mapped");
            assert!([0, 9].contains(&seen), "the page has {seen}");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const MMAP_OVER_AND_READER: Scenario = Scenario {
    name: "mmap-over-and-reader",
    about: "a CPU maps zeroes over a page and stores there, another one reads: it never sees the new and then the old",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.map(pages(PAGE, 1));
            machine.store(PAGE, 8).expect("it is mapped");
        },
        |machine| {
            let first = machine.load(PAGE).unwrap_or(0);
            let second = machine.load(PAGE).unwrap_or(0);
            assert!(first == 7 || second != 7, "it read {first} and then {second}");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
