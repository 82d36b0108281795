//! Pages move to other addresses.

use memory::PAGE_SIZE;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::remove::shared_page;
use super::{NEXT, PAGE};

/// Where pages move to: under another leaf table, and aligned as `PAGE` is.
pub(super) const ELSEWHERE: u64 = PAGE + (4 << 20);

/// A page that two CPUs use, and the table at the target, where somebody else's page is.
fn page_and_target(machine: &SimulatedEnvironment) {
    shared_page(machine);
    explorer::as_cpu(0, || {
        machine.map(pages(ELSEWHERE + PAGE_SIZE, 1));
        machine.store(ELSEWHERE + PAGE_SIZE, 1).expect("it is mapped");
    });
}

pub(in super::super) const MREMAP_AND_EVICTION: Scenario = Scenario {
    name: "mremap-and-eviction",
    about: "a page is moved, and evicted where it went by somebody who holds that table's lock alone, on a CPU that still \
            has the old address",
    setup: page_and_target,
    cpus: &[
        |machine| machine.relocate(pages(PAGE, 1), ELSEWHERE),
        |machine| {
            // Its kernel looks for memory, say.
            machine.evict(0, &[ELSEWHERE]);
            let _ = machine.store(PAGE, 9);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const MREMAP_AND_WRITER: Scenario = Scenario {
    name: "mremap-and-writer",
    about: "a CPU stores to a page while another one moves it, and unmaps it where it went: no store lands in what was freed",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, 1), ELSEWHERE);
            machine.load(ELSEWHERE).expect("it has moved there");
            machine.unmap(pages(ELSEWHERE, 1));
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

pub(in super::super) const MREMAP_BESIDE_A_NEIGHBOUR: Scenario = Scenario {
    name: "mremap-beside-a-neighbour",
    about: "a page is moved out of a table that stays, so that no more than it is flushed, and unmapped where it went, while another \
            CPU stores to it",
    setup: |machine| {
        page_and_target(machine);
        explorer::as_cpu(0, || {
            machine.map(pages(NEXT, 1));
            machine.store(NEXT, 1).expect("it is mapped");
        });
    },
    ..MREMAP_AND_WRITER
};

pub(in super::super) const MREMAP_AND_WRITEBACK: Scenario = Scenario {
    name: "mremap-and-writeback",
    about: "a dirty page is moved while somebody without the area lock writes it out where it went, and takes it as clean: no \
            store lands in it unnoticed",
    setup: page_and_target,
    cpus: &[
        |machine| machine.relocate(pages(PAGE, 1), ELSEWHERE),
        |machine| {
            machine.clean(0, ELSEWHERE);
            let _ = machine.store(PAGE, 9);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

/// What a program may rely on at this point.
pub(super) fn must(holds: bool, otherwise: &str) {
    if !holds {
        explorer::fail(format!("D3, linearizable returns: {otherwise}"));
    }
}

/// The last but one page under a leaf table.
const LAST_BUT_ONE: u64 = PAGE + 510 * PAGE_SIZE;

pub(in super::super) const MREMAP_WITHOUT_MEMORY: Scenario = Scenario {
    name: "mremap-without-memory",
    about: "pages are to move where they need two tables, and there is memory for one: nothing has moved afterwards, and no CPU \
            sees it otherwise",
    setup: |machine| {
        let space = machine.new_space();
        for cpu in 0..2 {
            explorer::as_cpu(cpu, || {
                machine.activate(space);
                if cpu == 0 {
                    machine.map(pages(LAST_BUT_ONE, 2));
                }
                machine.store(LAST_BUT_ONE, 7).expect("it is mapped");
            });
        }
        explorer::as_cpu(0, || machine.leave_frames(1));
    },
    cpus: &[
        |machine| {
            machine.fail_to_relocate(pages(LAST_BUT_ONE, 2), ELSEWHERE + 511 * PAGE_SIZE);
            let seen = machine.load(LAST_BUT_ONE);
            must(seen.is_ok_and(|seen| (7..9).contains(&seen)), "mremap has failed, and the page is gone");
        },
        |machine| {
            let stored = machine.store(LAST_BUT_ONE, 8);
            must(stored.is_ok(), "mremap fails, and a store finds no page");
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
