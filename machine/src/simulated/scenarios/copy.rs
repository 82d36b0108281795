//! Pages are shared with a child, and copied when they are written.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::remove::shared_page;

/// One space on all CPUs, whose page is shared with a child; nobody has used it since.
fn page_unread_since_fork(machine: &SimulatedEnvironment, cpus: usize) {
    explorer::as_cpu(0, || {
        machine.activate(machine.new_space());
        machine.map(pages(PAGE, 1));
        machine.store(PAGE, 7).expect("it is mapped");
        machine.fork(pages(PAGE, 1));
    });
    (1..cpus).for_each(|cpu| explorer::as_cpu(cpu, || machine.activate(0)));
}

/// One space on all CPUs, which have read a page that is shared with a child.
fn page_shared_with_a_child(machine: &SimulatedEnvironment, cpus: usize) {
    page_unread_since_fork(machine, cpus);
    for cpu in 0..cpus {
        explorer::as_cpu(cpu, || machine.load(PAGE)).expect("it is mapped");
    }
}

pub(in super::super) const FORK_AND_WRITER: Scenario = Scenario {
    name: "fork-and-writer",
    about: "a CPU stores to a page while another one forks: the child's copy does not change after fork has returned",
    setup: shared_page,
    cpus: &[
        |machine| {
            let child = machine.fork(pages(PAGE, 1));
            machine.activate(child);
            let first = machine.load(PAGE).expect("it is mapped");
            let second = machine.load(PAGE).expect("it is mapped");
            assert_eq!(first, second, "the child's page has changed under it");
        },
        |machine| {
            for value in 1..3 {
                machine.store(PAGE, value).expect("it is mapped");
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const COPY_AND_READER: Scenario = Scenario {
    name: "copy-and-reader",
    about: "a CPU's store makes a copy of a page while another one reads it: it never sees the store and then what was before",
    setup: |machine| page_shared_with_a_child(machine, 2),
    cpus: &[
        |machine| {
            machine.store(PAGE, 8).expect("it is mapped");
            machine.store(PAGE, 9).expect("it is mapped");
        },
        |machine| {
            let [first, second] = [0; 2].map(|_| machine.load(PAGE).expect("it is mapped"));
            assert!(first <= second, "it read {first} and then {second}");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const COPY_OF_AN_UNREAD_PAGE: Scenario = Scenario {
    name: "copy-of-an-unread-page",
    about: "as copy-and-reader, where nobody has used the page since the fork: whoever comes to it before the copy is told of that",
    setup: |machine| page_unread_since_fork(machine, 2),
    ..COPY_AND_READER
};

pub(in super::super) const SECOND_FORK_AND_READER: Scenario = Scenario {
    name: "second-fork-and-reader",
    about: "a page that is shared with a child, and has been read since, is shared with a second one, and then copied while another CPU reads it",
    setup: |machine| page_shared_with_a_child(machine, 2),
    cpus: &[
        |machine| {
            machine.fork(pages(PAGE, 1));
            machine.store(PAGE, 8).expect("it is mapped");
        },
        COPY_AND_READER.cpus[1],
    ],
    ..Scenario::BASE
};

pub(in super::super) const COPY_AND_TWO_READERS: Scenario = Scenario {
    name: "copy-and-two-readers",
    about: "as copy-and-reader, with two readers of which one has the old entry cached and the other has none",
    setup: |machine| {
        page_shared_with_a_child(machine, 2);
        explorer::as_cpu(2, || machine.activate(0));
    },
    cpus: &[
        |machine| machine.store(PAGE, 8).expect("it is mapped"),
        |machine| {
            let _ = machine.load(PAGE);
        },
        |machine| {
            let _ = machine.load(PAGE);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const TWO_COPY_THE_SAME_PAGE: Scenario = Scenario {
    name: "two-copy-the-same-page",
    about: "two CPUs store to a shared page at the same time: one copy is made, and both stores are in it",
    setup: |machine| page_shared_with_a_child(machine, 2),
    cpus: &[
        |machine| {
            machine.store(PAGE, 8).expect("it is mapped");
            let seen = machine.load(PAGE + 8).expect("it is mapped");
            assert!([0, 9].contains(&seen));
        },
        |machine| {
            machine.store(PAGE + 8, 9).expect("it is mapped");
            let seen = machine.load(PAGE + 8).expect("it is mapped");
            assert_eq!(seen, 9, "a store was lost");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const FORK_AND_TWO_WRITERS: Scenario = Scenario {
    name: "fork-and-two-writers",
    about: "two CPUs store to a page while a third one forks: whoever copies the page has every store that was made to it",
    setup: |machine| {
        shared_page(machine);
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| {
            machine.fork(pages(PAGE, 1));
        },
        |machine| machine.store(PAGE + 8, 8).expect("it is mapped"),
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            let seen = machine.load(PAGE).expect("it is mapped");
            assert_eq!(seen, 9, "a store was lost");
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const FIRST_STORE_AND_TWO_READERS: Scenario = Scenario {
    name: "first-store-and-two-readers",
    about: "the first store to a page of zeroes, while two CPUs read it of which one has the zeroes cached",
    setup: |machine| {
        let space = machine.new_space();
        explorer::as_cpu(0, || {
            machine.activate(space);
            machine.map(pages(PAGE, 1));
        });
        for cpu in 1..3 {
            explorer::as_cpu(cpu, || machine.activate(space));
        }
        explorer::as_cpu(1, || machine.load(PAGE)).expect("it is mapped");
    },
    cpus: COPY_AND_TWO_READERS.cpus,
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
