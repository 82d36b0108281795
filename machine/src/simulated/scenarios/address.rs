//! Pages move to other addresses.

use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::remove::shared_page;

/// Where pages move to: under another leaf table.
const ELSEWHERE: u64 = PAGE + (4 << 20);

pub(in super::super) const MREMAP_AND_EVICTION: Scenario = Scenario {
    name: "mremap-and-eviction",
    about: "a page is moved, and evicted where it went by somebody who holds that table's lock alone, on a CPU that still \
            has the old address",
    setup: |machine| {
        shared_page(machine);
        explorer::as_cpu(0, || {
            // The table at the target is there already, and stays: somebody else's page is in it.
            machine.map(pages(ELSEWHERE + memory::PAGE_SIZE, 1));
            machine.store(ELSEWHERE + memory::PAGE_SIZE, 1).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.relocate(pages(PAGE, 1), ELSEWHERE),
        |machine| {
            // Its kernel looks for memory, say.
            machine.evict(0, ELSEWHERE);
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
