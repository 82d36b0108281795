//! Kernel threads take pages of objects out of all entries, and flush when they need the frames. Until then CPUs may read what they have cached, and
//! whoever promises something, or changes which frame a page is, flushes before.
//!
//! CPU 0 is the kernel's.

use coherence::Switches;
use memory::Rights;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::batch::{keep_table, read_twice_unless_gone};
use super::{NEXT, PAGE};

/// Where pages move.
const ELSEWHERE: u64 = PAGE + (4 << 20);

/// CPU 0 takes what it can of the first object, and needs the frames at once.
fn put_by_and_release(machine: &SimulatedEnvironment) {
    machine.put_by(0);
    machine.release_waiting();
}

/// One space on the CPUs from 1 up to `cpus`, with the first page of an object mapped shared to be read, which those below `readers` have loaded.
fn shown(machine: &SimulatedEnvironment, cpus: usize, readers: usize) {
    shown_with(machine, cpus, readers, Rights::READ, true);
}

fn shown_with(machine: &SimulatedEnvironment, cpus: usize, readers: usize, rights: Rights, is_shared: bool) {
    let (space, object) = (machine.new_space(), machine.new_object());
    for cpu in 1..cpus {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 1 {
                machine.map_object_with(object, 0, pages(PAGE, 1), rights, is_shared);
                keep_table(machine, NEXT);
            }
            if cpu < readers {
                machine.load(PAGE).expect("it is mapped");
            }
        });
    }
}

/// Reads the page, which stays mapped.
fn read(machine: &SimulatedEnvironment) {
    machine.load(PAGE).expect("it is mapped");
}

fn read_thrice(machine: &SimulatedEnvironment) {
    (0..3).for_each(|_| read(machine));
}

pub(in super::super) const PUT_BY_AND_READER: Scenario = Scenario {
    name: "put-by-and-reader",
    about: "a CPU reads a page that was taken out and not flushed: the frame is not free before every CPU has flushed",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, read_thrice],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_TWICE: Scenario = Scenario {
    name: "put-by-twice",
    about: "a page waits, comes back, goes, and what can be had without a flush is taken in between",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[
        |machine| {
            machine.put_by(0);
            machine.redeem_waiting();
            machine.put_by(0);
            machine.release_waiting();
        },
        read_thrice,
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_FIRST_USE: Scenario = Scenario {
    name: "put-by-and-first-use",
    about: "a CPU comes for a page that waits, and another reads it through what it has cached: both have the same frame",
    setup: |machine| shown(machine, 3, 2),
    cpus: &[
        |machine| machine.put_by(0),
        |machine| {
            read(machine);
            read(machine);
        },
        read,
    ],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_COMING_BACK: Scenario = Scenario {
    name: "put-by-and-coming-back",
    about: "a CPU borrows its space and comes back while a page is taken out: it has flushed for it, or is told when the frame is needed",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        machine.go_lazy();
        machine.activate(0);
        read(machine);
        read(machine);
    }],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_SWITCH: Scenario = Scenario {
    name: "put-by-and-switch",
    about: "a CPU goes to another space and comes back under a tag while a page is taken out: whatever it says it has reached, it compares",
    setup: |machine| {
        shown(machine, 2, 2);
        machine.new_space();
    },
    cpus: &[put_by_and_release, |machine| {
        machine.activate(1);
        machine.activate(0);
        read(machine);
    }],
    tags: 3,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_SYSTEM_CALL: Scenario = Scenario {
    name: "put-by-and-system-call",
    about: "a CPU is in the kernel while a page is taken out, or its frame needed: it flushes on its way back",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        machine.system_call(|| {});
        read(machine);
        machine.system_call(|| {});
        read(machine);
    }],
    crossings: true,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_TWO_SPACES: Scenario = Scenario {
    name: "put-by-and-two-spaces",
    about: "a page of two spaces is taken out of both, one of which a CPU leaves",
    setup: |machine| {
        shown(machine, 2, 2);
        let other = machine.new_space();
        explorer::as_cpu(2, || {
            machine.activate(other);
            machine.map_object_with(0, 0, pages(PAGE, 1), Rights::READ, true);
            keep_table(machine, NEXT);
            read(machine);
        });
    },
    cpus: &[
        put_by_and_release,
        |machine| {
            read(machine);
            machine.leave();
        },
        read,
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_MUNMAP: Scenario = Scenario {
    name: "put-by-and-munmap",
    about: "a page is unmapped whose entry was taken out and whose flush waits: when the call returns it is gone",
    setup: |machine| shown(machine, 3, 3),
    cpus: &[
        |machine| machine.put_by(0),
        |machine| {
            machine.unmap(pages(PAGE, 1));
            assert!(machine.load(PAGE).is_err(), "the page is still there");
        },
        read_twice_unless_gone,
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_MPROTECT: Scenario = Scenario {
    name: "put-by-and-mprotect",
    about: "all rights go from a page whose flush waits: when the call returns nobody reads it",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[
        |machine| machine.put_by(0),
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::empty());
            assert!(machine.load(PAGE).is_err(), "the page can still be read");
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_MREMAP: Scenario = Scenario {
    name: "put-by-and-mremap",
    about: "a page is moved whose flush waits: when the call returns it is gone from its old address",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        machine.relocate(pages(PAGE, 1), ELSEWHERE);
        assert!(machine.load(PAGE).is_err(), "the page is still there");
        machine.load(ELSEWHERE).expect("it is here now");
    }],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_DROP: Scenario = Scenario {
    name: "put-by-and-drop",
    about: "MADV_DONTNEED of a page whose flush waits: the next access finds it anew",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        machine.drop_pages(pages(PAGE, 1));
        read(machine);
    }],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_FORK: Scenario = Scenario {
    name: "put-by-and-fork",
    about: "a process forks while a page of it waits: parent and child read it",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        let child = machine.fork(pages(PAGE, 2));
        read(machine);
        machine.activate(child);
        read(machine);
    }],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_TRUNCATE: Scenario = Scenario {
    name: "put-by-and-truncate",
    about: "an object is truncated whose pages wait: when the call returns nobody reads them",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[
        |machine| {
            machine.put_by(0);
            machine.truncate(0, 0, pages(PAGE, 1));
            machine.grow(0);
            machine.release_waiting();
        },
        read_twice_unless_gone,
    ],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_HOLE: Scenario = Scenario {
    name: "put-by-and-hole",
    about: "a hole is punched where a page waits: whoever comes for it gets zeroes, and nobody reads the old page after that",
    setup: |machine| shown(machine, 3, 2),
    cpus: &[
        |machine| {
            machine.put_by(0);
            machine.punch(0, 0, pages(PAGE, 1));
        },
        |machine| {
            read(machine);
            read(machine);
        },
        read,
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_CALL: Scenario = Scenario {
    name: "put-by-and-call",
    about: "a call writes to a page that waits: whoever reads it afterwards, through whatever it has cached, finds that, and it is not lost",
    setup: |machine| shown(machine, 2, 2),
    cpus: &[put_by_and_release, |machine| {
        machine.system_call(|| machine.write_object(0, 0, 5));
        assert_eq!(machine.load(PAGE), Ok(5), "D4, one order: what was written is not there");
        assert_eq!(machine.read_object(0, 0), 5);
    }],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_PRIVATE_COPY: Scenario = Scenario {
    name: "put-by-and-private-copy",
    about: "a CPU stores to a private mapping of a page that waits, which another still reads: one order of what they see",
    setup: |machine| shown_with(machine, 3, 2, super::super::user::READ_WRITE, false),
    cpus: &[
        |machine| machine.put_by(0),
        |machine| {
            read(machine);
            read(machine);
        },
        |machine| {
            machine.store(PAGE, 9).expect("it is mapped");
            assert_eq!(machine.load(PAGE), Ok(9), "D2, write integrity: a store is lost");
        },
    ],
    ..Scenario::BASE
};

/// CPU 1 stores to a page that could be stored to all along.
const STORING: Scenario = Scenario {
    setup: |machine| shown_with(machine, 2, 2, super::super::user::READ_WRITE, true),
    cpus: &[put_by_and_release, |machine| {
        machine.store(PAGE, 9).expect("it is mapped");
        let seen = machine.load(PAGE).expect("it is mapped");
        assert_eq!(seen, 9, "D2, write integrity: a store is lost");
    }],
    ..Scenario::BASE
};

pub(in super::super) const PUT_BY_AND_WRITER: Scenario = Scenario {
    name: "put-by-and-writer",
    about: "a CPU stores to a clean page that is taken out and could be stored to: that does not wait, and the store is not lost",
    ..STORING
};

pub(in super::super) const PUT_BY_DIRTY: Scenario = Scenario {
    name: "put-by-dirty",
    about: "a CPU goes on storing to a page that was dirty: that is not taken back, and no store is lost",
    setup: |machine| {
        shown_with(machine, 2, 2, super::super::user::READ_WRITE, true);
        explorer::as_cpu(1, || machine.store(PAGE, 7).expect("it is mapped"));
    },
    ..STORING
};

pub(in super::super) const PUT_BY_AND_TRUSTED_WRITER: Scenario = Scenario {
    name: "put-by-and-trusted-writer",
    about: "as put-by-and-writer, with the mechanism clean: the processor looks at the entry again before the first store, so that it may wait",
    switches: Switches { clean: true, ..Switches::DEFAULT },
    ..STORING
};

pub(in super::super) const PUT_BY_BESIDE_A_DEVICE: Scenario = Scenario {
    name: "put-by-beside-a-device",
    about: "a page is taken out that a CPU and a device use: the device, which has no generations, has dropped it before it waits",
    setup: |machine| {
        shown(machine, 2, 2);
        machine.attach_device(0);
        machine.device_uses(PAGE);
    },
    device: &[PAGE],
    ..PUT_BY_AND_READER
};
