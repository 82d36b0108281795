//! Whole histories on up to four CPUs: requests, switches, lazy mode, gathers, faults, in schedules drawn at random.
//!
//! The schedules come from a seed: `CEASEFIRE_SEED` chooses it, `CEASEFIRE_SCHEDULES` how many there are. A failing check prints
//! its schedule; put that into `CEASEFIRE_SCHEDULE` and run the same test alone to see the same failure again.
//!
//! shuttle knows no weak memory (that is loom's part, in `tests/loom`), so the faults that leave out a fence are not caught
//! here; all others must be.
#![cfg(shuttle)]

mod kernel;
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};

use coherence::{Fault, Mechanism, Switches};
use machine::{PAGES, STALE, World, current};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

fn draw(choices: usize) -> usize {
    thread_rng().gen_range(0..choices)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// All mechanisms on most of the time; else all but one, or none.
fn draw_switches() -> Switches {
    match draw(12) {
        0 => Switches::VANILLA,
        index if index <= Mechanism::ALL.len() => {
            Switches::DEFAULT.without(Mechanism::ALL[index - 1].name()).expect("it is a mechanism's name")
        }
        _ => Switches::DEFAULT,
    }
}

/// A CPU's script: so many steps of user code, kernel threads and switches.
fn live(world: &World, steps: usize) {
    let mut running = None;
    for _ in 0..steps {
        let (space, page) = (draw(world.spaces.len()), draw(PAGES));
        match (draw(14), running) {
            (0, _) | (1 | 2, None) => {
                world.activate(space);
                running = Some(space);
            }
            (1 | 2, Some(_)) => {
                world.go_lazy();
                running = None;
            }
            (3, _) => {
                world.leave();
                running = None;
            }
            (4..=7, Some(running)) => kernel::touch(world, running, page, draw(2) == 0),
            // The others are kernel paths, which may be on behalf of any space.
            (8, _) => kernel::protect(world, space, page),
            (9, _) => kernel::replace(world, space, page),
            (10 | 11, _) => kernel::unmap(world, space, page..(page + 1 + draw(2)).min(PAGES)),
            (12, _) => kernel::take_back(world, page),
            (13, _) => kernel::write_out(world, page),
            _ => {}
        }
        world.window();
    }
}

fn history(cpus: usize, steps: usize, fault: Option<Fault>) {
    let spaces = 1 + draw(2);
    let switches = if fault.is_some() { Switches::DEFAULT } else { draw_switches() };
    let world = World::new(cpus, spaces, [1, 3][draw(2)], switches, fault);
    world.run(move |world| live(world, steps));
}

/// One CPU drops pages and tables, or takes pages back, all the time, and another changes what it has loaded all the time.
fn churn(fault: Option<Fault>) {
    let world = World::new(2, 2, [1, 3][draw(2)], Switches::DEFAULT, fault);
    world.run(|world| {
        for _ in 0..6 {
            if current() == 0 {
                match draw(2) {
                    0 => kernel::unmap(world, 0, 0..PAGES),
                    _ => kernel::take_back(world, 0),
                }
                continue;
            }
            world.activate(0);
            kernel::touch(world, 0, 0, true);
            match draw(3) {
                0 => world.activate(1),
                1 => world.leave(),
                _ => world.go_lazy(),
            }
            world.window();
        }
    });
}

fn config(persistence: FailurePersistence) -> Config {
    let mut config = Config::new();
    // The simulated machine is a few tens of kilobytes, made on a task's stack.
    config.stack_size = 1 << 20;
    config.failure_persistence = persistence;
    config.silence_warnings = true;
    config
}

fn run(
    scheduler: impl Scheduler + 'static,
    persistence: FailurePersistence,
    history: impl Fn() + Send + Sync + 'static,
) {
    Runner::new(scheduler, config(persistence)).run(history);
}

fn seed() -> u64 {
    variable("CEASEFIRE_SEED").unwrap_or(0x7ea5_ef17)
}

/// Runs a history in schedules of both kinds: each step at random, and few changes of who runs (which finds deeper races).
fn check(schedules: usize, history: fn()) {
    if let Ok(schedule) = std::env::var("CEASEFIRE_SCHEDULE") {
        return run(ReplayScheduler::new_from_encoded(&schedule), FailurePersistence::None, history);
    }
    let schedules = variable("CEASEFIRE_SCHEDULES").map_or(schedules, |count| count as usize);
    println!("seed {}, {schedules} schedules of each kind", seed());
    let random = RandomScheduler::new_from_seed(seed(), schedules);
    run(random, FailurePersistence::Print, history);
    let few_changes = PctScheduler::new_from_seed(seed(), 5, schedules);
    run(few_changes, FailurePersistence::Print, history);
}

/// The fault must be noticed, by the oracle, within so many schedules of either kind.
fn must_be_noticed(fault: Fault, schedules: usize) {
    let histories: [fn(Option<Fault>); 2] = [|fault| history(3, 15, fault), churn];
    let noticed = catch_unwind(AssertUnwindSafe(|| {
        for history in histories {
            let random = RandomScheduler::new_from_seed(seed(), schedules);
            run(random, FailurePersistence::None, move || history(Some(fault)));
            let few_changes = PctScheduler::new_from_seed(seed(), 5, schedules);
            run(few_changes, FailurePersistence::None, move || history(Some(fault)));
        }
    }));
    let Err(panic) = noticed else { panic!("{fault:?} goes unnoticed") };
    let message = panic.downcast::<String>().map_or_else(|_| "no message".to_string(), |message| *message);
    assert!(message.contains(STALE), "{fault:?} fails otherwise: {message}");
}

#[test]
fn two_cpus() {
    check(4_000, || history(2, 20, None));
}

#[test]
fn three_cpus() {
    check(4_000, || history(3, 15, None));
}

#[test]
fn four_cpus() {
    check(4_000, || history(4, 12, None));
}

#[test]
fn two_cpus_that_churn() {
    check(8_000, || churn(None));
}

#[test]
fn faults_are_noticed() {
    let only_weak_memory_shows =
        [Fault::NoFenceComingBack, Fault::NoFenceEntering, Fault::NoFenceInitiator, Fault::NoFenceBatch];
    // A CPU must come between two neighbouring steps, and use a page once more behind the flush: too seldom for schedules at random.
    // loom's scenarios catch them, and the past bugs of the simulated machine.
    let needs_luck = [
        Fault::BatchTargetsReadFirst,
        Fault::BatchNotSettled,
        Fault::DeferredNotSettled,
        Fault::EpochReadLate,
    ];
    // The histories ask for no barriers and count no crossings, and their machine has nothing but interrupts; loom's scenarios have all of these.
    let elsewhere = [
        &only_weak_memory_shows[..],
        &needs_luck,
        &Fault::OF_BARRIERS,
        &Fault::OF_MACHINES,
        &Fault::OF_MODES,
    ]
    .concat();
    for fault in Fault::ALL.into_iter().filter(|fault| !elsewhere.contains(fault)) {
        must_be_noticed(fault, 10_000);
        println!("{fault:?} is noticed");
    }
}
