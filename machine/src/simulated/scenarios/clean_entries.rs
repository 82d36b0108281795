//! The mechanism `clean`: write is taken from entries that are not dirty, and nothing is flushed.

use coherence::Switches;
use memory::Rights;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::{READ_WRITE, pages};
use super::address::must;
use super::{NEXT, PAGE};

const CLEAN: Switches = Switches { clean: true, ..Switches::DEFAULT };

/// One space on two CPUs that have read a page of an object, which may be written and is not dirty.
fn page_read_by_both(machine: &SimulatedEnvironment) {
    let (space, object) = (machine.new_space(), machine.new_object());
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map_object(object, 0, pages(PAGE, 1), true);
            }
            machine.load(PAGE).expect("it is mapped");
        });
    }
}

pub(in super::super) const UNFLUSHED_MPROTECT_AND_WRITER: Scenario = Scenario {
    name: "unflushed-mprotect-and-writer",
    about: "a CPU that has only read a page so far stores to it while another one takes the right to write away, and need not flush if \
            it comes first: nothing changes once that has returned",
    setup: page_read_by_both,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            let first = machine.load(PAGE).expect("it may be read");
            let second = machine.load(PAGE).expect("it may be read");
            must(first == second, "a page that cannot be written has changed");
        },
        |machine| {
            for value in 1..3 {
                if machine.store(PAGE, value).is_err() {
                    return;
                }
            }
        },
    ],
    switches: CLEAN,
    ..Scenario::BASE
};

pub(in super::super) const UNFLUSHED_MPROTECT_THERE_AND_BACK: Scenario = Scenario {
    name: "unflushed-mprotect-there-and-back",
    about: "the right to write is taken from a page that is not dirty and given back, and nobody is told of either: all may write then",
    setup: page_read_by_both,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            machine.protect(pages(PAGE, 1), READ_WRITE);
            machine.store(PAGE, 3).expect("it may be written again");
            machine.protect(pages(PAGE, 1), Rights::READ);
        },
        |machine| {
            let _ = machine.store(PAGE, 2);
            let _ = machine.load(PAGE);
            let _ = machine.store(PAGE, 4);
        },
    ],
    switches: CLEAN,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const UNFLUSHED_MPROTECT_AND_WRITEBACK: Scenario = Scenario {
    name: "unflushed-mprotect-and-writeback",
    about: "write is taken from a page that is not dirty, and a kernel thread then finds nothing to do to have it clean: no store lands \
            in it unnoticed",
    setup: page_read_by_both,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            machine.write_out(0);
        },
        |machine| {
            for value in 1..3 {
                let _ = machine.store(PAGE, value);
            }
        },
    ],
    switches: CLEAN,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const UNFLUSHED_MPROTECT_OF_A_DIRTY_NEIGHBOUR: Scenario = Scenario {
    name: "unflushed-mprotect-of-a-dirty-neighbour",
    about: "write is taken in one call from a page that is dirty and from one that is not: the first is flushed",
    setup: |machine| {
        let (space, object) = (machine.new_space(), machine.new_object());
        for cpu in 0..2 {
            explorer::as_cpu(cpu, || {
                machine.activate(space);
                if cpu == 0 {
                    machine.map_object(object, 0, pages(PAGE, 2), true);
                }
                machine.store(PAGE, 1).expect("it is mapped");
                machine.load(NEXT).expect("it is mapped");
            });
        }
    },
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 2), Rights::READ);
            let seen = [PAGE, NEXT].map(|page| machine.load(page).expect("it may be read"));
            let again = [PAGE, NEXT].map(|page| machine.load(page).expect("it may be read"));
            must(seen == again, "a page that cannot be written has changed");
        },
        |machine| {
            for page in [PAGE, NEXT] {
                let _ = machine.store(page, 2);
            }
        },
    ],
    switches: CLEAN,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
