//! Which CPU makes which step of a program, found out before it runs.

use std::collections::BTreeMap;

use fuzz::{Call, Program};

/// Who is where, found out beforehand.
pub(super) struct Plan {
    pub(super) cpus: usize,
    /// For each round: the CPU of each of its steps.
    pub(super) places: Vec<Vec<usize>>,
    /// The process of each actor.
    pub(super) processes: BTreeMap<u8, u8>,
}

impl Plan {
    pub(super) fn of(program: &Program) -> Self {
        let cpus =
            if program.threads > 2 || program.rounds.iter().any(|round| round.len() > 2) { 3 } else { 2 };
        let mut processes: BTreeMap<u8, u8> = (0..program.threads).map(|actor| (actor, 0)).collect();
        let mut on: BTreeMap<u8, usize> =
            (0..fuzz::ACTORS).map(|actor| (actor, usize::from(actor) % cpus)).collect();
        let mut places = Vec::new();
        for round in &program.rounds {
            places.push(round.iter().map(|step| on[&step.actor]).collect());
            for step in round {
                match step.call {
                    Call::Hop { cpu } => {
                        on.insert(step.actor, usize::from(cpu) % cpus);
                    }
                    Call::Fork { child } => {
                        processes.insert(child, child);
                    }
                    _ => {}
                }
            }
        }
        Plan { cpus, places, processes }
    }
}
