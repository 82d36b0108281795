//! A CPU in the kernel is spared the interrupt for a flush, and makes up for it before it returns to user mode.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::batch::mapped;
use super::switch::two_spaces;
use super::{NEXT, PAGE, remove};

/// Both CPUs in space 0, with two pages in the caches of each: when one goes, no table does.
pub(super) fn two_pages(machine: &SimulatedEnvironment) {
    two_spaces(machine);
    explorer::as_cpu(1, || {
        machine.activate(0);
        machine.store(PAGE, 7).expect("it is mapped");
        machine.store(NEXT, 7).expect("it is mapped");
    });
}

/// Of a kernel whose CPUs say in which mode they are.
const COUNTED: Scenario = Scenario { crossings: true, setup: two_pages, ..Scenario::BASE };

pub(in super::super) const MUNMAP_AND_SYSTEM_CALL: Scenario = Scenario {
    name: "munmap-and-system-call",
    about: "a CPU makes a system call and reads a page afterwards, which another one unmaps",
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.system_call(|| ());
            let _ = machine.load(PAGE);
        },
    ],
    ..COUNTED
};

pub(in super::super) const MPROTECT_AND_TWO_SYSTEM_CALLS: Scenario = Scenario {
    name: "mprotect-and-two-system-calls",
    about: "a CPU makes two system calls, and stores before, between and after them, while another one makes the page read-only, and \
            copies it: no store comes after the copy",
    cpus: &[
        |machine| {
            machine.fork(pages(PAGE, 1));
            let _ = machine.store(PAGE, 3);
        },
        |machine| {
            for value in 4..6 {
                let _ = machine.store(PAGE, value);
                machine.system_call(|| ());
            }
            let _ = machine.load(PAGE);
        },
    ],
    bounds: [2, 3, 4],
    ..COUNTED
};

pub(in super::super) const TWO_UNMAP_BESIDE_A_SYSTEM_CALL: Scenario = Scenario {
    name: "two-unmap-beside-a-system-call",
    about: "two CPUs unmap a page each, and use the other's: each is in the kernel while the other flushes, and so is a third",
    setup: |machine| {
        two_pages(machine);
        explorer::as_cpu(2, || {
            machine.activate(0);
            machine.store(PAGE, 7).expect("it is mapped");
            machine.store(NEXT, 7).expect("it is mapped");
        });
    },
    cpus: &[
        |machine| {
            machine.drop_pages(pages(PAGE, 1));
            let _ = machine.load(NEXT);
        },
        |machine| {
            machine.drop_pages(pages(NEXT, 1));
            let _ = machine.load(PAGE);
        },
        |machine| {
            machine.system_call(|| ());
            let _ = machine.load(PAGE);
            let _ = machine.load(NEXT);
        },
    ],
    bounds: [1, 2, 3],
    ..COUNTED
};

pub(in super::super) const MUNMAP_AND_SWITCH_IN_THE_KERNEL: Scenario = Scenario {
    name: "munmap-and-switch-in-the-kernel",
    about: "a CPU goes to another space and comes back under its tag, while another one unmaps a page there: the mark is not the space's",
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.activate(1);
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    tags: 3,
    ..COUNTED
};

pub(in super::super) const MUNMAP_AND_KERNEL_TASK: Scenario = Scenario {
    name: "munmap-and-kernel-task",
    about: "a CPU begins to borrow its space, and comes back, while another one unmaps a page there",
    cpus: &[
        |machine| machine.unmap(pages(PAGE, 1)),
        |machine| {
            machine.go_lazy();
            machine.activate(0);
            let _ = machine.load(PAGE);
        },
    ],
    ..COUNTED
};

pub(in super::super) const TABLES_FREED_BESIDE_A_SYSTEM_CALL: Scenario = Scenario {
    name: "tables-freed-beside-a-system-call",
    about: "a CPU makes a system call, and its walker runs on, while another one frees tables there",
    setup: remove::shared_page,
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), |machine| machine.system_call(|| ())],
    walked: &[NEXT],
    ..COUNTED
};

pub(in super::super) const RECLAIM_AND_SYSTEM_CALL: Scenario = Scenario {
    name: "reclaim-and-system-call",
    about: "a CPU makes a system call and reads a page afterwards, which a batch takes back",
    setup: |machine| mapped(machine, 2, true),
    cpus: &[
        |machine| machine.reclaim(0),
        |machine| {
            machine.system_call(|| ());
            let _ = machine.load(PAGE);
        },
    ],
    ..COUNTED
};

pub(in super::super) const NMI_AND_SYSTEM_CALL: Scenario = Scenario {
    name: "nmi-and-system-call",
    about: "a CPU makes a system call, and is sampled at any step, while another one unmaps a page",
    cpus: &[|machine| machine.unmap(pages(PAGE, 1)), |machine| machine.system_call(|| ())],
    sampled: Some((1, PAGE)),
    bounds: [2, 3, 4],
    ..COUNTED
};
