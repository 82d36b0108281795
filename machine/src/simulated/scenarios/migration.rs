//! Threads move from CPU to CPU between any two things they do, while translations change and barriers are asked for.

use super::super::SimulatedEnvironment;
use super::super::scenario::Scenario;
use super::super::user::pages;
use super::{PAGE, barrier, cores, remove};

fn read_twice(machine: &SimulatedEnvironment) {
    for _ in 0..2 {
        if machine.load(PAGE).is_err() {
            return;
        }
    }
}

pub(in super::super) const MOVING_AND_MUNMAP: Scenario = Scenario {
    name: "moving-and-munmap",
    about: "a thread unmaps a page, another one reads it, and the two change places: whichever CPU either is on, the page is gone",
    setup: remove::shared_page,
    cpus: &[
        |machine| {
            machine.unmap(pages(PAGE, 1));
            assert!(machine.load(PAGE).is_err(), "the page is still there");
        },
        read_twice,
    ],
    moves: true,
    ..Scenario::BASE
};

pub(in super::super) const MOVING_AND_BARRIER: Scenario = Scenario {
    name: "moving-and-barrier",
    about: "a thread stores and loads without a fence, and moves to another CPU, while another one asks for a barrier",
    setup: |machine| {
        barrier::registered(machine);
        explorer::as_cpu(2, || machine.activate(0));
    },
    cpus: &[barrier::CALLER, barrier::exchange, |_| ()],
    moves: true,
    bounds: [2, 3, 3],
    ..Scenario::BASE
};

pub(in super::super) const MOVING_AND_CODE: Scenario = Scenario {
    name: "moving-and-code",
    about: "a thread changes code that another one executes, and the two change places",
    setup: cores::code,
    cpus: &[cores::MODIFY, cores::execute],
    code: &[cores::CODE],
    moves: true,
    ..Scenario::BASE
};
