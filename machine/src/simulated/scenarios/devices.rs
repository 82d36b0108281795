//! A device walks a space's tables beside the CPUs, and caches what it finds.

use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{NEXT, PAGE};

/// A CPU with a page of its own and room for another, and a device that has found the page.
fn page_and_device(machine: &super::super::SimulatedEnvironment) {
    let space = machine.new_space();
    explorer::as_cpu(0, || {
        machine.activate(space);
        machine.map(pages(PAGE, 1));
        machine.store(PAGE, 7).expect("it is mapped");
        machine.attach_device(space);
    });
    machine.device_uses(PAGE);
}

const DEVICE: Scenario = Scenario { setup: page_and_device, device: &[PAGE, NEXT], ..Scenario::BASE };

pub(in super::super) const DEVICE_AND_MUNMAP: Scenario = Scenario {
    name: "device-and-munmap",
    about: "a CPU unmaps a page, with its tables, that a device goes on using",
    cpus: &[|machine| machine.unmap(pages(PAGE, 1))],
    ..DEVICE
};

pub(in super::super) const DEVICE_AND_MUNMAP_OF_ONE_PAGE: Scenario = Scenario {
    name: "device-and-munmap-of-one-page",
    about: "a CPU unmaps one page of two that a device uses: the table stays",
    setup: |machine| {
        page_and_device(machine);
        explorer::as_cpu(0, || {
            machine.map(pages(NEXT, 1));
            machine.store(NEXT, 7).expect("it is mapped");
        });
    },
    cpus: &[|machine| machine.unmap(pages(PAGE, 1))],
    ..DEVICE
};

pub(in super::super) const DEVICE_AND_FORK: Scenario = Scenario {
    name: "device-and-fork",
    about: "a CPU forks and copies a page that a device writes to",
    cpus: &[|machine| {
        machine.fork(pages(PAGE, 1));
        machine.store(PAGE, 8).expect("it is mapped");
    }],
    bounds: [2, 3, 4],
    ..DEVICE
};

pub(in super::super) const DEVICE_ATTACHED_AND_MUNMAP: Scenario = Scenario {
    name: "device-attached-and-munmap",
    about: "a device is attached to a space, works there and is detached, while another CPU unmaps a page",
    setup: super::remove::shared_page,
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.attach_device(0);
            machine.detach_device(0);
        },
    ],
    bounds: [2, 3, 4],
    ..DEVICE
};
