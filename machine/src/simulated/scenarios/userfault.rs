//! Pages that a monitor watches: faults that are told to it, pages that it fills in, and guards against stores.

use memory::Watch;

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::address::{ELSEWHERE, must};
use super::remove::shared_page;

/// One space on two CPUs, a page that is missing, and watched.
fn missing_page(machine: &SimulatedEnvironment) {
    let space = machine.new_space();
    for cpu in 0..2 {
        explorer::as_cpu(cpu, || {
            machine.activate(space);
            if cpu == 0 {
                machine.map(pages(PAGE, 1));
                machine.watch(pages(PAGE, 1), Watch::MISSING);
            }
        });
    }
}

/// One space on two CPUs, which have stored to a page that is watched for stores.
fn stored_page(machine: &SimulatedEnvironment) {
    shared_page(machine);
    explorer::as_cpu(0, || machine.watch(pages(PAGE, 1), Watch::STORES));
}

/// One space on one CPU, which has stored to a page that is watched for stores. Others come when nobody need tell them anything more.
fn page_stored_by_one(machine: &SimulatedEnvironment) {
    let space = machine.new_space();
    explorer::as_cpu(0, || {
        machine.activate(space);
        machine.map(pages(PAGE, 1));
        machine.store(PAGE, 7).expect("it is mapped");
        machine.watch(pages(PAGE, 1), Watch::STORES);
    });
}

/// What a monitor that takes a snapshot does: nothing is stored while the page is guarded.
fn snapshot(machine: &SimulatedEnvironment) {
    machine.guard(pages(PAGE, 1));
    let [first, second] = [0; 2].map(|_| machine.load(PAGE).expect("it is mapped"));
    must(first == second, "a page has been guarded, and has changed");
    machine.unguard(pages(PAGE, 1));
}

pub(in super::super) const GUARD_AND_WRITER: Scenario = Scenario {
    name: "guard-and-writer",
    about: "a page is guarded while another CPU stores to it: nothing changes until the guard is gone, and no store waits for ever",
    setup: stored_page,
    cpus: &[snapshot, |machine| {
        for value in 1..3 {
            machine.store(PAGE, value).expect("it is mapped");
        }
    }],
    ..Scenario::BASE
};

pub(in super::super) const GUARD_AND_FORK: Scenario = Scenario {
    name: "guard-and-fork",
    about: "a page is guarded, another CPU forks, and a third one stores: fork finds an entry that is not writable, and that nobody \
            can store through any more",
    setup: |machine| {
        stored_page(machine);
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        snapshot,
        |machine| {
            machine.fork(pages(PAGE, 1));
        },
        |machine| machine.store(PAGE, 8).expect("it is mapped"),
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const GUARD_TWICE_AND_WRITER: Scenario = Scenario {
    name: "guard-twice-and-writer",
    about: "two CPUs guard the same page while a third one stores to it: the second guard finds nothing to do, and returns only when \
            nobody can store any more",
    setup: |machine| {
        machine.refuse_guarded_stores();
        stored_page(machine);
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.guard(pages(PAGE, 1)),
        |machine| {
            machine.guard(pages(PAGE, 1));
            let [first, second] = [0; 2].map(|_| machine.load(PAGE).expect("it is mapped"));
            must(first == second, "a page has been guarded, and has changed");
        },
        |machine| {
            let _ = machine.store(PAGE, 8);
        },
    ],
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const GUARD_AND_COPY: Scenario = Scenario {
    name: "guard-and-copy",
    about: "a page that is shared with a child is guarded while another CPU's store makes a copy of it: the copy is guarded, too, or \
            the store comes first",
    setup: |machine| {
        page_stored_by_one(machine);
        explorer::as_cpu(0, || {
            machine.fork(pages(PAGE, 1));
        });
        explorer::as_cpu(1, || {
            machine.activate(0);
            machine.load(PAGE).expect("it is mapped");
        });
    },
    cpus: &[snapshot, |machine| machine.store(PAGE, 8).expect("it is mapped")],
    ..Scenario::BASE
};

pub(in super::super) const UNGUARD_AND_CHILD: Scenario = Scenario {
    name: "unguard-and-child",
    about: "a guarded page is shared with a child, and the guard taken away: the parent's store makes a copy",
    setup: |machine| {
        page_stored_by_one(machine);
        explorer::as_cpu(0, || machine.guard(pages(PAGE, 1)));
        let child = explorer::as_cpu(0, || machine.fork(pages(PAGE, 1)));
        explorer::as_cpu(1, || machine.activate(child));
    },
    cpus: &[
        |machine| {
            machine.unguard(pages(PAGE, 1));
            machine.store(PAGE, 8).expect("it is mapped");
        },
        |machine| {
            for _ in 0..2 {
                let seen = machine.load(PAGE).expect("it is mapped");
                must(seen == 7, "fork has returned, and the child's page changes under it");
            }
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const GUARDED_PAGE_MOVES: Scenario = Scenario {
    name: "guarded-page-moves",
    about: "a guarded page moves to where nobody watches, while another CPU stores to it: it can be stored to there",
    setup: |machine| {
        page_stored_by_one(machine);
        explorer::as_cpu(0, || machine.guard(pages(PAGE, 1)));
        explorer::as_cpu(1, || {
            machine.activate(0);
            machine.load(PAGE).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| {
            machine.relocate(pages(PAGE, 1), ELSEWHERE);
            machine.store(ELSEWHERE, 8).expect("it is mapped");
        },
        |machine| {
            let _ = machine.store(PAGE, 9);
        },
    ],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};

pub(in super::super) const FAULT_AND_FILL: Scenario = Scenario {
    name: "fault-and-fill",
    about: "a page is filled in at the moment at which another CPU finds it missing: whoever waits is woken",
    setup: missing_page,
    cpus: &[
        |machine| {
            let seen = machine.load(PAGE).expect("it is mapped");
            must(seen == 5, "a page was filled in, and holds something else");
        },
        |machine| {
            machine.fill(pages(PAGE, 1), 5);
        },
    ],
    ..Scenario::BASE
};

pub(in super::super) const FAULT_AND_UNWATCH: Scenario = Scenario {
    name: "fault-and-unwatch",
    about: "a page is no longer watched at the moment at which another CPU finds it missing: nobody waits for a monitor that is gone",
    setup: missing_page,
    cpus: &[
        |machine| {
            machine.load(PAGE).expect("it is mapped");
        },
        |machine| machine.unwatch(pages(PAGE, 1)),
    ],
    ..Scenario::BASE
};

pub(in super::super) const FAULT_AND_MUNMAP: Scenario = Scenario {
    name: "fault-and-munmap",
    about: "a missing page is unmapped while another CPU waits for it: that finds nothing there",
    setup: missing_page,
    cpus: &[
        |machine| {
            let _ = machine.load(PAGE);
        },
        |machine| machine.unmap(pages(PAGE, 1)),
    ],
    ..Scenario::BASE
};

pub(in super::super) const FILL_AND_MMAP_OVER: Scenario = Scenario {
    name: "fill-and-mmap-over",
    about: "a page is filled in while another CPU maps something else there, which nobody watches: it stays as it was mapped",
    setup: missing_page,
    cpus: &[
        |machine| {
            machine.fill(pages(PAGE, 1), 5);
        },
        |machine| {
            machine.map(pages(PAGE, 1));
            let seen = machine.load(PAGE).expect("it is mapped");
            must(seen == 0, "mmap has returned, and a page that was meant for something else is filled in");
        },
    ],
    ..Scenario::BASE
};
