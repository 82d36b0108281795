//! Rights are taken away and given back.

use memory::Rights;

use super::super::scenario::Scenario;
use super::super::user::{READ_WRITE, pages};
use super::PAGE;
use super::remove::shared_page;

pub(in super::super) const MPROTECT_AND_WRITER: Scenario = Scenario {
    name: "mprotect-and-writer",
    about: "a CPU stores to a page while another one takes the right to write away: nothing changes once that has returned",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            let first = machine.load(PAGE).expect("it may be read");
            let second = machine.load(PAGE).expect("it may be read");
            assert_eq!(first, second, "a page that cannot be written has changed");
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

pub(in super::super) const MPROTECT_THERE_AND_BACK: Scenario = Scenario {
    name: "mprotect-there-and-back",
    about: "the right to write is taken and given back: giving it back interrupts nobody, and nobody is killed by an old entry",
    setup: shared_page,
    cpus: &[
        |machine| {
            machine.protect(pages(PAGE, 1), Rights::READ);
            machine.protect(pages(PAGE, 1), READ_WRITE);
            machine.store(PAGE, 3).expect("it may be written again");
        },
        |machine| {
            let _ = machine.load(PAGE);
            let _ = machine.store(PAGE, 2);
            let _ = machine.load(PAGE);
        },
    ],
    ..Scenario::BASE
};
