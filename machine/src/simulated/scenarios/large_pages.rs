//! Large pages: changed as a whole, cut, split and made of small ones, beside CPUs that hold them. No CPU may ever hold two sizes of one
//! address, and use it.

use memory::{LargePolicy, Rights};

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// All that a large page maps.
const WHOLE: u64 = 512;

const BASE: Scenario =
    Scenario { large_pages: true, walked: &[PAGE, NEXT], bounds: [2, 3, 4], ..Scenario::BASE };

/// One space on two CPUs, and a place for a large page, to which both have stored.
fn shared(machine: &SimulatedEnvironment) {
    let space = machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, WHOLE));
            }
            machine.store(PAGE, 7).expect("it is mapped");
        });
    }
}

/// The same, where small pages are mapped, and the second CPU has stored to two.
fn shared_small(machine: &SimulatedEnvironment) {
    machine.0.frames.large_pages().set_policy(LargePolicy::Never);
    shared(machine);
    explorer::as_cpu(1, || machine.store(NEXT, 7).expect("it is mapped"));
}

pub(in super::super) const MUNMAP_OF_PART_AND_READER: Scenario = Scenario {
    name: "large-munmap-of-part-and-reader",
    about: "a page is cut out of a large one while another CPU reads that page and its neighbour: the page is gone when munmap has \
            returned, and nobody has it and the large one",
    setup: shared,
    cpus: &[
        |machine| {
            machine.unmap(pages(NEXT, 1));
            assert_eq!(machine.load(PAGE), Ok(7));
        },
        |machine| {
            assert_eq!(machine.load(PAGE), Ok(7));
            let _ = machine.load(NEXT);
            assert_eq!(machine.load(PAGE), Ok(7));
        },
    ],
    ..BASE
};

pub(in super::super) const SPLIT_AND_READER: Scenario = Scenario {
    name: "large-split-and-reader",
    about: "a store to a large page that a child shares splits it, while another CPU reads it: that CPU never has two sizes, nor the \
            old page beside its copy",
    setup: |machine| {
        let space = machine.new_space();
        explorer::as_cpu(0, || {
            machine.activate(space);
            machine.map(pages(PAGE, WHOLE));
            machine.store(PAGE, 7).expect("it is mapped");
            // While nobody else is there who would have to be told.
            machine.fork(pages(PAGE, WHOLE));
        });
        explorer::as_cpu(1, || {
            machine.activate(space);
            assert_eq!(machine.load(PAGE), Ok(7));
        });
    },
    cpus: &[
        |machine| machine.store(PAGE, 8).expect("it is mapped"),
        |machine| {
            assert_eq!(machine.load(NEXT), Ok(0));
            let seen = [machine.load(PAGE), machine.load(PAGE)];
            assert!([[Ok(7), Ok(7)], [Ok(7), Ok(8)], [Ok(8), Ok(8)]].contains(&seen), "{seen:?}");
        },
    ],
    bounds: [1, 2, 3],
    ..BASE
};

pub(in super::super) const SPLIT_AND_DROP: Scenario = Scenario {
    name: "large-split-and-drop",
    about: "a store to a large page that a child shares splits it, while another CPU drops a page of it: that is gone when the call returns",
    setup: SPLIT_AND_READER.setup,
    cpus: &[SPLIT_AND_READER.cpus[0], |machine| {
        machine.drop_pages(pages(NEXT, 1));
        assert_eq!(machine.load(NEXT), Ok(0));
    }],
    bounds: [1, 2, 3],
    ..BASE
};

pub(in super::super) const MPROTECT_AND_WRITER: Scenario = Scenario {
    name: "large-mprotect-and-writer",
    about: "a large page becomes read-only while another CPU stores to two places in it: no store lands after mprotect has returned",
    setup: shared,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, WHOLE), Rights::READ);
            let _ = machine.load(PAGE);
        },
        |machine| {
            if machine.store(PAGE, 8).is_ok() {
                let _ = machine.store(NEXT, 9);
            }
        },
    ],
    ..BASE
};

pub(in super::super) const COLLAPSE_AND_WRITER: Scenario = Scenario {
    name: "large-collapse-and-writer",
    about: "small pages become a large one while another CPU stores to two of them: each store is in the large page afterwards",
    setup: shared_small,
    cpus: &[
        |machine| machine.collapse(pages(PAGE, WHOLE)),
        |machine| {
            machine.store(PAGE, 8).expect("it is mapped");
            machine.store(NEXT, 9).expect("it is mapped");
            assert_eq!(machine.load(PAGE), Ok(8));
        },
    ],
    ..BASE
};

pub(in super::super) const COLLAPSE_AND_BORROWER: Scenario = Scenario {
    name: "large-collapse-and-borrower",
    about: "small pages become a large one, while a CPU that only borrows the space has the way to their table cached: its walker is \
            out of the table before that is freed",
    setup: |machine| {
        shared_small(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[
        |machine| {
            machine.collapse(pages(PAGE, WHOLE));
            assert_eq!(machine.load(PAGE), Ok(7));
        },
        |_| {},
    ],
    // The last one is nowhere cached, so that its walker goes through the table.
    walked: &[PAGE, NEXT, NEXT + memory::PAGE_SIZE],
    ..BASE
};
