//! Kernel threads take pages of objects back beside devices, under a hypervisor, and on machines that drop translations without
//! interrupts. A batch interrupts its CPUs all the same, tells devices at once, and leaves to a virtual CPU that does not run the flush
//! that it gets before it does; who settles for a batch may do so by a broadcast.

use super::super::SimulatedEnvironment;
use super::super::hypervisor::Hypervisor;
use super::super::remote::Remote;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::PAGE;
use super::batch::{RECLAIM_AND_READER, RECLAIM_AND_WRITER, keep_table, mapped};

pub(in super::super) const RECLAIM_BESIDE_A_DEVICE: Scenario = Scenario {
    name: "reclaim-beside-a-device",
    about: "a page is taken back that a CPU and a device use: the device has dropped it before the frame is free",
    setup: |machine| {
        mapped(machine, 2, true);
        machine.attach_device(0);
        machine.device_uses(PAGE);
    },
    cpus: RECLAIM_AND_READER.cpus,
    device: &[PAGE],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_OF_A_DESCHEDULED_READER: Scenario = Scenario {
    name: "reclaim-of-a-descheduled-reader",
    about: "a virtual CPU is descheduled while a page that it reads is taken back, and is flushed before it runs",
    setup: |machine| mapped(machine, 2, true),
    cpus: RECLAIM_AND_READER.cpus,
    hypervisor: Hypervisor::FlushesBeforeRunning,
    ..Scenario::BASE
};

/// CPU 1 unmaps a page that CPU 2 has too, and that the kernel's thread has taken out or is about to.
const REMOTE: Scenario = Scenario {
    setup: |machine| mapped(machine, 3, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            if machine.load(PAGE).is_ok() {
                let _ = machine.load(PAGE);
            }
        },
    ],
    tags: 3,
    remote: Remote::Broadcast,
    bounds: [1, 2, 3],
    ..Scenario::BASE
};

pub(in super::super) const RECLAIM_AND_MUNMAP_BY_BROADCAST: Scenario = Scenario {
    name: "reclaim-and-munmap-by-broadcast",
    about: "a page is unmapped by a broadcast whose entry has been emptied and not flushed: when the call returns nobody reads it",
    ..REMOTE
};

pub(in super::super) const RECLAIM_AND_MUNMAP_BY_HYPERCALL: Scenario = Scenario {
    name: "reclaim-and-munmap-by-hypercall",
    about: "as reclaim-and-munmap-by-broadcast, with a hypervisor that may refuse the call",
    remote: Remote::Hypercall { may_refuse: true },
    ..REMOTE
};

/// As `mapped` for CPU 1, which has gone on to another space since.
fn mapped_and_left(machine: &SimulatedEnvironment) {
    mapped(machine, 2, true);
    let other = machine.new_space();
    explorer::as_cpu(1, || {
        machine.activate(other);
        keep_table(machine, PAGE);
    });
}

pub(in super::super) const RECLAIM_WHILE_ENTERING: Scenario = Scenario {
    name: "reclaim-while-entering",
    about: "a CPU enters a space, of which it kept entries under a tag, while a page is taken back there",
    setup: mapped_and_left,
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.activate(0);
            machine.load(PAGE).expect("it is mapped");
        },
    ],
    remote: Remote::Never,
    bounds: [2, 3, 4],
    ..REMOTE
};

pub(in super::super) const RECLAIM_WHILE_ENTERING_A_SHARED_TAG: Scenario = Scenario {
    name: "reclaim-while-entering-a-shared-tag",
    about: "as reclaim-while-entering, under a tag that all CPUs share",
    remote: Remote::Broadcast,
    ..RECLAIM_WHILE_ENTERING
};

pub(in super::super) const AGED_AND_TAKEN_BACK: Scenario = Scenario {
    name: "aged-and-taken-back",
    about: "the mark that a page was used is taken without a flush, and then the page, which a CPU still uses: the frame is not free before its flush",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| {
            machine.age(0);
            machine.reclaim(0);
        },
        RECLAIM_AND_READER.cpus[1],
    ],
    ..Scenario::BASE
};

pub(in super::super) const AGING_AND_WRITER: Scenario = Scenario {
    name: "aging-and-writer",
    about: "a CPU stores to a page while the mark that it was used is taken, and then the page: the store is not lost",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| {
            machine.age(0);
            machine.reclaim(0);
        },
        RECLAIM_AND_WRITER.cpus[1],
    ],
    ..Scenario::BASE
};
