//! Whole leaf tables move to other addresses. They are almost empty, as each word of a table that is looked at is a step.

use memory::Rights;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::{READ_WRITE, pages};
use super::address::{ELSEWHERE, must};
use super::{NEXT, PAGE};

/// All that a leaf table maps.
const WHOLE: u64 = 512;

/// One space on two CPUs, and all that a leaf table maps, of which both have stored to the first page.
fn shared_table(machine: &SimulatedEnvironment) {
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

/// As `shared_table`, with a second page to which only the second CPU has stored.
fn shared_table_of_two(machine: &SimulatedEnvironment) {
    shared_table(machine);
    explorer::as_cpu(1, || machine.store(NEXT, 8).expect("it is mapped"));
}

pub(in super::super) const TABLE_MOVE_AND_WRITER: Scenario = Scenario {
    name: "table-move-and-writer",
    about: "a CPU stores to two pages while another one moves their table, and drops one where it went: no store lands in what was \
            freed, and none at the old addresses after mremap has returned",
    setup: shared_table_of_two,
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            assert_eq!(machine.load(ELSEWHERE).map(|seen| (7..9).contains(&seen)), Ok(true));
            machine.drop_pages(pages(ELSEWHERE + memory::PAGE_SIZE, 1));
        },
        |machine| {
            if machine.store(PAGE, 8).is_ok() {
                let _ = machine.store(NEXT, 9);
            }
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const TABLE_MOVE_AND_EVICTION: Scenario = Scenario {
    name: "table-move-and-eviction",
    about: "a table is moved, and a page evicted from it where it went by somebody without the area lock, on a CPU that still has the \
            old address",
    setup: shared_table,
    cpus: &[
        |machine| machine.relocate(pages(PAGE, WHOLE), ELSEWHERE),
        |machine| {
            machine.evict(0, &[ELSEWHERE]);
            let _ = machine.store(PAGE, 9);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const TABLE_MOVE_AND_EVICTION_BEHIND_IT: Scenario = Scenario {
    name: "table-move-and-eviction-behind-it",
    about: "a page is evicted where it was by a kernel thread without the area lock, while its table is moved away and used where \
            it went",
    setup: |machine| {
        let space = machine.new_space();
        explorer::as_cpu(1, || {
            machine.activate(space);
            machine.map(pages(PAGE, WHOLE));
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.evict(0, &[PAGE]),
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            let _ = machine.load(ELSEWHERE);
            // For this the lock of the table is waited for.
            machine.drop_pages(pages(ELSEWHERE, 1));
            let _ = machine.load(ELSEWHERE);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const TABLE_MOVE_AND_TRUNCATION: Scenario = Scenario {
    name: "table-move-and-truncation",
    about: "a page is cut off its object while its table is moved: whoever looks for it at the new place and then at the old one \
            finds it, and nobody reaches it afterwards",
    setup: shared_table,
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            let _ = machine.load(ELSEWHERE);
        },
        |machine| {
            machine.cut_off(0, pages(PAGE, WHOLE * 3), &[ELSEWHERE, PAGE]);
            let seen = machine.load(ELSEWHERE).unwrap_or(0);
            must(seen == 0, "a page is cut off, and still mapped");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const TABLE_MOVE_AND_RETRACTION: Scenario = Scenario {
    name: "table-move-and-retraction",
    about: "a table is moved while somebody without the area lock takes it out and frees it: one of them finds nothing to do",
    setup: shared_table,
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            let _ = machine.load(ELSEWHERE);
        },
        |machine| machine.retract(0, PAGE),
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const PROTECTED_TABLE_MOVE_AND_READER: Scenario = Scenario {
    name: "protected-table-move-and-reader",
    about: "a table of a page without any right is moved, and the page readable again where it went: no walker finds it at its old \
            address through the upper levels that it has cached",
    setup: |machine| {
        let space = machine.new_space();
        explorer::as_cpu(0, || {
            machine.activate(space);
            machine.map(pages(PAGE, WHOLE));
            machine.store(PAGE, 7).expect("it is mapped");
            machine.protect(pages(PAGE, WHOLE), Rights::empty());
        });
        explorer::as_cpu(1, || machine.activate(space));
    },
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            machine.protect(pages(ELSEWHERE, 1), READ_WRITE);
        },
        |machine| {
            let _ = machine.load(PAGE);
        },
    ],
    walked: &[PAGE],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const BORROWER_WALKS_A_MOVED_TABLE: Scenario = Scenario {
    name: "borrower-walks-a-moved-table",
    about: "a table is moved, and a page in it dropped, beside a CPU that only borrows the space and is not told: it may walk the table, \
            and uses nothing that it finds, before it comes back",
    setup: |machine| {
        shared_table(machine);
        explorer::as_cpu(1, || machine.go_lazy());
    },
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, WHOLE), ELSEWHERE);
            machine.drop_pages(pages(ELSEWHERE, 1));
        },
        |machine| {
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    walked: &[PAGE],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
