//! The orderings of the protocol, explored by loom: every interleaving and every outcome that weak memory allows.
//!
//! Each scenario has a handful of steps on two or three CPUs. It must hold as the code stands, and must *fail* with each of the
//! faults listed beside it: that shows that the scenario reaches the race, and that the line which the fault leaves out is
//! needed. The faults are points in the real code (`src/fault.rs`), not copies of it.
//!
//! A failing scenario prints loom's own account; run it alone with `LOOM_LOG=trace LOOM_LOCATION=1`, or with
//! `LOOM_CHECKPOINT_FILE` set to go on from the failing schedule.
#![cfg(loom)]

mod barriers;
mod batch;
mod devices;
mod epochs;
mod hardware;
mod machine;
mod mode;
mod operations;
mod registration;
mod remote;
mod scenarios;
mod sharers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coherence::{Fault, Row};
use machine::{EARLY_RETURN, LOST_STORE, Setting, UNORDERED, UNSAFE_FRAME, World};

/// A scenario: its machine, its script, and the faults that it must catch.
struct Scenario {
    cpus: usize,
    tags: usize,
    speculates: bool,
    remote: bool,
    device: bool,
    counts_crossings: bool,
    awaited: Option<usize>,
    follower: Option<usize>,
    /// How many preemptions are explored; `None` for all.
    preemptions: Option<usize>,
    script: fn(&Arc<World>),
    /// What must come about in one execution at least.
    shows: Option<Row>,
    catches: &'static [Fault],
}

impl Scenario {
    /// Explores the scenario; says how many executions that took and how often they showed what they must, or what went wrong.
    fn explore(&self, fault: Option<Fault>) -> Result<(usize, usize), String> {
        let setting = Setting {
            cpus: self.cpus,
            tags: self.tags,
            speculates: self.speculates,
            remote: self.remote,
            device: self.device,
            counts_crossings: self.counts_crossings,
            awaited: self.awaited,
            follower: self.follower,
            fault,
        };
        let mut explorer = loom::model::Builder::new();
        explorer.max_branches = 10_000;
        explorer.preemption_bound = explorer.preemption_bound.or(self.preemptions);
        let script = self.script;
        let executions = Arc::new(AtomicUsize::new(0));
        let shown = Arc::new(AtomicUsize::new(0));
        let (counter, shows, seen) = (executions.clone(), self.shows, shown.clone());
        let model = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            let world = World::new(setting);
            script(&world);
            let shown = shows.map_or(0, |row| world.coherence.ledger().total(row));
            seen.fetch_add(shown as usize, Ordering::Relaxed);
        };
        let explored = catch_unwind(AssertUnwindSafe(|| explorer.check(model)));
        let counts = || (executions.load(Ordering::Relaxed), shown.load(Ordering::Relaxed));
        explored.map(|()| counts()).map_err(|panic| match panic.downcast::<String>() {
            Ok(message) if message.contains("Causality violation") => {
                format!("{UNSAFE_FRAME}: nothing orders a use before what must come after it ({message})")
            }
            Ok(message) => *message,
            Err(_) => "a panic without a message".to_string(),
        })
    }

    /// Explores the scenario as the code stands, and with each fault. A mutant (`mutation/`) is one more way in which the code stands.
    fn check(&self) {
        match self.explore(None) {
            Ok((_, 0)) if self.shows.is_some() => panic!("no execution shows {:?}", self.shows),
            Ok((executions, _)) => println!("holds in all of {executions} executions"),
            Err(message) => panic!("the protocol does not hold: {message}"),
        }
        if std::env::var_os("CEASEFIRE_MUTANT").is_some() {
            return;
        }
        for fault in self.catches {
            match self.explore(Some(*fault)) {
                Ok(_) => panic!("{fault:?} goes unnoticed"),
                Err(message) => {
                    let promises = [UNSAFE_FRAME, LOST_STORE, EARLY_RETURN, UNORDERED];
                    let by_oracle = promises.iter().any(|promise| message.starts_with(promise));
                    assert!(by_oracle, "{fault:?} fails otherwise: {message}");
                }
            }
        }
    }
}
