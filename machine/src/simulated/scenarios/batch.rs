//! Kernel threads take pages of objects back, cut them off or clean them, and flush later, while programs use and change their
//! mappings of them.
//!
//! CPU 0 is the kernel's. What it has recorded and not flushed is what the others meet.

use memory::Rights;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// A page in another table than `PAGE`.
const FAR: u64 = PAGE + (2 << 20);
/// Where pages move.
const ELSEWHERE: u64 = PAGE + (4 << 20);

/// Another page in a table, so that unmapping frees no table: that would flush whatever is pending.
pub(super) fn keep_table(machine: &SimulatedEnvironment, page: u64) {
    machine.map(pages(page, 1));
    machine.load(page).expect("it is mapped");
}

/// One space on the CPUs from 1 up to `cpus`, with the first page of an object mapped, which each has loaded.
pub(super) fn mapped(machine: &SimulatedEnvironment, cpus: usize, is_shared: bool) {
    let (space, object) = (machine.new_space(), machine.new_object());
    for cpu in 1..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 1 {
                machine.map_object(object, 0, pages(PAGE, 1), is_shared);
                keep_table(machine, NEXT);
            }
            machine.load(PAGE).expect("it is mapped");
        });
    }
}

/// As `mapped`, shared, and each has stored 7 to the page.
pub(super) fn stored(machine: &SimulatedEnvironment, cpus: usize) {
    mapped(machine, cpus, true);
    for cpu in 1..cpus {
        explorer::as_cpu(cpu, || machine.store(PAGE, 7).expect("it is mapped"));
    }
}

/// A CPU's script: it reads the page twice, if that is there so long.
pub(super) fn read_twice_unless_gone(machine: &SimulatedEnvironment) {
    for _ in 0..2 {
        if machine.load(PAGE).is_err() {
            return;
        }
    }
}

pub(in super::super) const RECLAIM_AND_READER: Scenario = Scenario {
    name: "reclaim-and-reader",
    about: "a CPU reads a page while it is taken back: the frame is not free before its flush",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            for _ in 0..3 {
                machine.load(PAGE).expect("it is mapped");
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_COMING_BACK: Scenario = Scenario {
    name: "reclaim-and-coming-back",
    about: "without lazy CPUs: a page is taken back while a CPU borrows its space for a kernel thread, which then comes back and reads it",
    setup: |machine| {
        mapped(machine, 2, true);
        machine.new_object();
    },
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.go_lazy();
            // The kernel thread's work. It is there so that an interrupt can come meanwhile.
            machine.reclaim(1);
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    switches: coherence::Switches { lazy: false, ..coherence::Switches::DEFAULT },
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_WRITER: Scenario = Scenario {
    name: "reclaim-and-writer",
    about: "a CPU stores to a clean page while it is taken back: the store is not lost",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            let seen = machine.load(PAGE).expect("it is mapped");
            assert_eq!(seen, 9, "D2, write integrity: a store is lost");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_MUNMAP: Scenario = Scenario {
    name: "reclaim-and-munmap",
    about: "a page is unmapped whose entry has been emptied and not flushed: when the call returns it is gone",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.unmap(pages(PAGE, 1));
            assert!(machine.load(PAGE).is_err(), "the page is still there");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_MREMAP: Scenario = Scenario {
    name: "reclaim-and-mremap",
    about: "a page is moved whose entry has been emptied and not flushed: when the call returns it is gone from its old address",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.relocate(pages(PAGE, 1), ELSEWHERE);
            assert!(machine.load(PAGE).is_err(), "the page is still there");
            machine.load(ELSEWHERE).expect("it is here now");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

/// Here CPU 0 is the program's, which comes first.
pub(in super::super) const RECLAIM_AND_UNMAP_OF_TWO_TABLES: Scenario = Scenario {
    name: "reclaim-and-unmap-of-two-tables",
    about: "a range in two tables is unmapped while a page in the second is taken back: pending flushes are looked for at each table",
    setup: |machine| {
        machine.new_space();
        machine.new_object();
        machine.activate(0);
        machine.map_object(0, 1, pages(FAR, 1), true);
        machine.load(FAR).expect("it is mapped");
        keep_table(machine, FAR - 2 * memory::PAGE_SIZE);
        keep_table(machine, FAR + memory::PAGE_SIZE);
    },
    cpus: &[
        |machine| {
            // The first table has nothing in this range, and so nothing to flush.
            machine.unmap(pages(FAR - memory::PAGE_SIZE, 2));
            assert!(machine.load(FAR).is_err(), "the page is still there");
        },
        |machine| machine.reclaim(0),
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

/// Here CPU 0 is the program's, which comes first. Each of its flushes is one of everything, after which its walker runs ahead.
pub(in super::super) const RECLAIM_AND_TWO_DROPS: Scenario = Scenario {
    name: "reclaim-and-two-drops",
    about: "a page is taken back during a flush of another: that flush settles nothing that was recorded after it began",
    setup: |machine| {
        machine.new_space();
        machine.new_object();
        machine.activate(0);
        machine.map_object(0, 1, pages(FAR, 1), true);
        machine.load(FAR).expect("it is mapped");
        machine.map(pages(PAGE, 1));
        machine.store(PAGE, 7).expect("it is mapped");
    },
    cpus: &[
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            machine.drop_pages(pages(FAR, 1));
            machine.load(FAR).expect("it is mapped");
        },
        |machine| machine.reclaim(0),
    ],
    switches: coherence::Switches { ranged: false, ..coherence::Switches::DEFAULT },
    walked: &[FAR],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_PRIVATE_COPY: Scenario = Scenario {
    name: "reclaim-and-private-copy",
    about: "a private page is stored to after its object's page was taken out of the entry: nobody sees the new and then the old",
    setup: |machine| mapped(machine, 3, false),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| machine.store(PAGE, 9).expect("it is mapped"),
        |machine| {
            let first = machine.load(PAGE).expect("it is mapped");
            let second = machine.load(PAGE).expect("it is mapped");
            assert!(first != 9 || second == 9, "D4, one order: it read {first} and then {second}");
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const CLEAN_AND_WRITER: Scenario = Scenario {
    name: "clean-and-writer",
    about: "a CPU stores to a page while it is written out: each store is written out, or marks the page again",
    setup: |machine| stored(machine, 2),
    cpus: &[
        |machine| machine.write_out(0),
        |machine| {
            for value in 1..3 {
                machine.store(PAGE, value).expect("it is mapped");
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const CLEAN_AND_MPROTECT: Scenario = Scenario {
    name: "clean-and-mprotect",
    about: "a page loses the right to write that cleaning has taken away and not flushed: when the call returns it is gone",
    setup: |machine| stored(machine, 2),
    cpus: &[
        |machine| machine.write_out(0),
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            assert!(machine.store(PAGE, 9).is_err(), "the page is still writable");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const CLEAN_AND_MUNMAP: Scenario = Scenario {
    name: "clean-and-munmap",
    about: "a page is written out while one CPU unmaps it and another one stores to it: no store is lost",
    setup: |machine| stored(machine, 3),
    cpus: &[
        |machine| machine.write_out(0),
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            for value in 1..3 {
                if machine.store(PAGE, value).is_err() {
                    return;
                }
            }
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const CLEAN_TWICE_AND_WRITER: Scenario = Scenario {
    name: "clean-twice-and-writer",
    about: "two kernel threads write out a page: the one that finds it clean waits for the flush of the one that made it so",
    setup: |machine| {
        machine.new_space();
        machine.new_object();
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.map_object(0, 0, pages(PAGE, 1), true);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.write_out(0),
        |machine| machine.write_out(0),
        |machine| {
            for value in 1..3 {
                machine.store(PAGE, value).expect("it is mapped");
            }
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

/// `fsync` after a store: that is on the disk when it returns.
fn synchronize(machine: &SimulatedEnvironment) {
    machine.write_out(0);
    let is_written = machine.written_out(0, 0) == Some(7);
    assert!(is_written, "D2, write integrity: a store that was made before is not written out");
}

pub(in super::super) const WRITE_OUT_AND_DROP: Scenario = Scenario {
    name: "write-out-and-drop",
    about: "a page is written out that was stored to before, while its entry goes, with the mark: the store is on the disk when the call returns",
    setup: |machine| stored(machine, 2),
    cpus: &[synchronize, |machine| machine.drop_pages(pages(PAGE, 1))],
    ..Scenario::BASE
};

pub(in super::super) const WRITE_OUT_AND_MUNMAP: Scenario = Scenario {
    name: "write-out-and-munmap",
    about: "as write-out-and-drop, where the page's area goes too",
    cpus: &[synchronize, |machine| machine.unmap(pages(PAGE, 1))],
    ..WRITE_OUT_AND_DROP
};

pub(in super::super) const TRUNCATE_AND_READER: Scenario = Scenario {
    name: "truncate-and-reader",
    about: "a page is cut off an object while a CPU reads it and faults it in again: when the call returns it is gone",
    setup: |machine| {
        machine.new_space();
        machine.new_object();
        explorer::as_cpu(0, || machine.activate(0));
        explorer::as_cpu(1, || {
            machine.activate(0);
            machine.map_object(0, 0, pages(PAGE, 1), true);
        });
    },
    cpus: &[
        |machine| {
            machine.truncate(0, 0, pages(PAGE, 1));
            assert!(
                machine.load(PAGE).is_err(),
                "D3, linearizable returns: the page was cut off, and is there"
            );
        },
        |machine| {
            let _ = machine.load(PAGE);
            let _ = machine.load(PAGE);
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const TRUNCATE_AND_MUNMAP: Scenario = Scenario {
    name: "truncate-and-munmap",
    about: "a page is cut off whose entry munmap has emptied and not flushed: when the call returns nobody reads it",
    setup: |machine| mapped(machine, 3, true),
    cpus: &[
        |machine| machine.truncate(0, 0, pages(PAGE, 1)),
        |machine| machine.unmap(pages(PAGE, 1)),
        read_twice_unless_gone,
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};
