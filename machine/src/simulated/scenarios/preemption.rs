//! A hypervisor deschedules a CPU at a bad moment.

use super::super::hypervisor::Hypervisor;
use super::super::scenario::Scenario;
use super::NEXT;
use super::lazy::BORROW_AND_MUNMAP;
use super::remove::{MUNMAP_AND_READER, MUNMAP_AND_WRITER, shared_page};
use super::switch::{ENTER_WITH_A_TAG_AND_MUNMAP, two_spaces};
use super::tables::BORROWER_WALKS_FREED_TABLES;

const VIRTUAL: Scenario = Scenario { hypervisor: Hypervisor::FlushesBeforeRunning, ..Scenario::BASE };

pub(in super::super) const DESCHEDULED_READER: Scenario = Scenario {
    name: "descheduled-reader",
    about: "a virtual CPU is descheduled while another one unmaps a page that it reads, and waits for it",
    setup: shared_page,
    cpus: MUNMAP_AND_READER.cpus,
    hypervisor: Hypervisor::Deschedules,
    ..Scenario::BASE
};

pub(in super::super) const DESCHEDULED_WRITER: Scenario = Scenario {
    name: "descheduled-writer",
    about: "a virtual CPU that stores to a page is descheduled while another one unmaps it, and is flushed before it runs",
    setup: shared_page,
    cpus: MUNMAP_AND_WRITER.cpus,
    ..VIRTUAL
};

pub(in super::super) const DESCHEDULED_WHILE_ENTERING: Scenario = Scenario {
    name: "descheduled-while-entering",
    about: "a virtual CPU is descheduled in the middle of a switch to a space, of which it kept entries under a tag",
    setup: two_spaces,
    cpus: ENTER_WITH_A_TAG_AND_MUNMAP.cpus,
    tags: 3,
    ..VIRTUAL
};

pub(in super::super) const DESCHEDULED_WHILE_BORROWING: Scenario = Scenario {
    name: "descheduled-while-borrowing",
    about: "a virtual CPU is descheduled while it begins to borrow a space and comes back to it",
    setup: shared_page,
    cpus: BORROW_AND_MUNMAP.cpus,
    bounds: [2, 3, 4],
    ..VIRTUAL
};

pub(in super::super) const DESCHEDULED_BORROWER: Scenario = Scenario {
    name: "descheduled-borrower",
    about: "a virtual CPU that borrows a space is descheduled while another one frees its tables",
    setup: BORROWER_WALKS_FREED_TABLES.setup,
    cpus: BORROWER_WALKS_FREED_TABLES.cpus,
    walked: &[NEXT],
    ..VIRTUAL
};
