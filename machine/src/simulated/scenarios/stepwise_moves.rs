//! Moves without the mechanism `moves`: two pages move in two steps, as they go to two tables, and each step is flushed by itself.

use coherence::Switches;
use memory::PAGE_SIZE;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::address::{ELSEWHERE, must};

const STEPWISE: Switches = Switches { moves: false, ..Switches::DEFAULT };
const NEXT: u64 = PAGE + PAGE_SIZE;
/// The last page of a table, and the first one of the next.
const TARGET: u64 = ELSEWHERE + 511 * PAGE_SIZE;
const NEXT_TARGET: u64 = TARGET + PAGE_SIZE;

/// Two pages that two CPUs use, and both tables at the target, where somebody else's pages are.
fn pages_and_targets(machine: &SimulatedEnvironment) {
    let space = machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, 2));
            }
            machine.store(PAGE, 7).expect("it is mapped");
            machine.store(NEXT, 7).expect("it is mapped");
        });
    }
    explorer::as_cpu(0, || {
        for neighbour in [TARGET - PAGE_SIZE, NEXT_TARGET + PAGE_SIZE] {
            machine.map(pages(neighbour, 1));
            machine.store(neighbour, 1).expect("it is mapped");
        }
    });
}

pub(in super::super) const STEPWISE_MOVE_AND_EVICTION: Scenario = Scenario {
    name: "stepwise-move-and-eviction",
    about: "of two pages that are moved one after the other, the first is evicted where it went by somebody without the area lock, on a \
            CPU that still has the old address",
    setup: pages_and_targets,
    cpus: &[
        |machine| machine.relocate(pages(PAGE, 2), TARGET),
        |machine| {
            machine.evict(0, &[TARGET]);
            let _ = machine.store(PAGE, 9);
        },
    ],
    switches: STEPWISE,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const STEPWISE_MOVE_AND_WRITEBACK: Scenario = Scenario {
    name: "stepwise-move-and-writeback",
    about: "of two dirty pages that are moved one after the other, the first is written out where it went, and taken as clean: no store \
            lands in it unnoticed",
    setup: pages_and_targets,
    cpus: &[
        |machine| machine.relocate(pages(PAGE, 2), TARGET),
        |machine| {
            machine.clean(0, TARGET);
            let _ = machine.store(PAGE, 9);
        },
    ],
    switches: STEPWISE,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const STEPWISE_MOVE_AND_TRUNCATION: Scenario = Scenario {
    name: "stepwise-move-and-truncation",
    about: "of two pages that are moved one after the other, the second is cut off its object between the two steps: whoever looks for it at \
            the new place and then at the old one finds it",
    setup: pages_and_targets,
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, 2), TARGET);
            let _ = machine.load(NEXT_TARGET);
        },
        |machine| {
            machine.cut_off(0, pages(NEXT_TARGET, 1), &[NEXT_TARGET, NEXT]);
            let seen = machine.load(NEXT_TARGET).unwrap_or(0);
            must(seen == 0, "a page is cut off, and still mapped");
        },
    ],
    switches: STEPWISE,
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
