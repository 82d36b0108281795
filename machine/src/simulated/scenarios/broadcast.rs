//! Machines that drop translations on other CPUs without interrupting them.

use super::super::remote::Remote;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::lazy::BORROW_AND_MUNMAP;
use super::remove::{MUNMAP_AND_WRITER, shared_page};
use super::several::{FAR, two_pages};
use super::switch::{ENTER_WITH_A_TAG_AND_MUNMAP, two_spaces};
use super::tables::{BORROWER_WALKS_FREED_TABLES, USER_WALKS_FREED_TABLES};
use super::{NEXT, PAGE};

/// Tags enough for all, and a broadcast.
const BROADCAST: Scenario = Scenario { tags: 3, remote: Remote::Broadcast, ..Scenario::BASE };
/// The same, and a hypervisor instead of the broadcast.
const HYPERCALL: Scenario = Scenario { remote: Remote::Hypercall { may_refuse: false }, ..BROADCAST };

pub(in super::super) const BROADCAST_AND_WRITER: Scenario = Scenario {
    name: "broadcast-and-writer",
    about: "a CPU stores to a page while another one unmaps it by a broadcast: no store lands in what was freed",
    setup: shared_page,
    cpus: MUNMAP_AND_WRITER.cpus,
    ..BROADCAST
};

pub(in super::super) const BROADCAST_WHILE_ENTERING: Scenario = Scenario {
    name: "broadcast-while-entering",
    about: "a CPU enters a space, of which it kept entries under the shared tag, while another one unmaps a page by a broadcast",
    setup: two_spaces,
    cpus: ENTER_WITH_A_TAG_AND_MUNMAP.cpus,
    ..BROADCAST
};

pub(in super::super) const BROADCAST_WHILE_BORROWING: Scenario = Scenario {
    name: "broadcast-while-borrowing",
    about: "a CPU begins to borrow a space and comes back to it while another one unmaps a page by a broadcast",
    setup: shared_page,
    cpus: BORROW_AND_MUNMAP.cpus,
    ..BROADCAST
};

pub(in super::super) const BROADCAST_OF_FREED_TABLES: Scenario = Scenario {
    name: "broadcast-of-freed-tables",
    about: "a CPU uses a space while another one frees tables there by a broadcast and gives them to a new mapping",
    setup: USER_WALKS_FREED_TABLES.setup,
    cpus: USER_WALKS_FREED_TABLES.cpus,
    walked: &[NEXT],
    bounds: [2, 3, 4],
    ..BROADCAST
};

pub(in super::super) const SHARED_TAG_PASSED_ON: Scenario = Scenario {
    name: "shared-tag-passed-on",
    about: "a space ends and another one gets its shared tag, under which a CPU still holds the first one's pages",
    setup: |machine| {
        two_spaces(machine);
        explorer::as_cpu(0, || {
            machine.unmap(pages(PAGE, 2));
            machine.activate(1);
        });
        machine.end_space(0);
        // It gets that tag, and maps another frame there.
        let heir = machine.new_space();
        explorer::as_cpu(0, || {
            machine.activate(heir);
            machine.map(pages(PAGE, 2));
            machine.store(PAGE, 3).expect("it is mapped");
            machine.store(NEXT, 3).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.activate(2);
            let seen = machine.load(NEXT).expect("it is mapped");
            assert_eq!(seen, 3, "the page is another space's");
            let _ = machine.load(PAGE);
        },
    ],
    bounds: [2, 3, 4],
    ..BROADCAST
};

pub(in super::super) const HYPERCALL_WHILE_ENTERING: Scenario = Scenario {
    name: "hypercall-while-entering",
    about: "a virtual CPU enters a space, of which it kept entries under a tag, while the hypervisor drops a page there",
    setup: two_spaces,
    cpus: ENTER_WITH_A_TAG_AND_MUNMAP.cpus,
    ..HYPERCALL
};

pub(in super::super) const HYPERCALL_OF_FREED_TABLES: Scenario = Scenario {
    name: "hypercall-of-freed-tables",
    about: "a virtual CPU begins to borrow a space while another one frees its tables with the hypervisor's help",
    setup: BORROWER_WALKS_FREED_TABLES.setup,
    cpus: BORROWER_WALKS_FREED_TABLES.cpus,
    walked: &[NEXT],
    ..HYPERCALL
};

pub(in super::super) const HYPERCALL_OR_INTERRUPT: Scenario = Scenario {
    name: "hypercall-or-interrupt",
    about: "two virtual CPUs drop a page each, and one of them has to use interrupts, as the hypervisor refuses its call",
    setup: |machine| two_pages(machine, 2, FAR),
    cpus: &[
        |machine| machine.drop_pages(pages(PAGE, 1)),
        |machine| {
            machine.drop_pages(pages(FAR, 1));
            let _ = machine.load(PAGE);
        },
    ],
    remote: Remote::Hypercall { may_refuse: true },
    bounds: [2, 3, 4],
    ..HYPERCALL
};
