//! What is explored: a scenario, with the real code or with a mistake in it.

use explorer::{Outcome, Program, Replay, Schedule, run};

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenario::Scenario;
use super::super::{past_bugs, scenarios};

/// One thing to explore.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) scenario: &'static Scenario,
    pub(super) mistake: Option<Mistake>,
}

impl Subject {
    pub(super) fn of_bug(bug: &'static PastBug) -> Self {
        Subject { name: bug.name, scenario: bug.scenario, mistake: Some(bug.mistake) }
    }

    pub(super) fn of_scenario(scenario: &'static Scenario) -> Self {
        Subject { name: scenario.name, scenario, mistake: None }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let bug = past_bugs::ALL.iter().find(|bug| bug.name == name);
        bug.map(|bug| Self::of_bug(bug)).or_else(|| scenarios::named(name).map(Self::of_scenario))
    }

    /// A fresh run of it, on this thread.
    pub(super) fn program(&self) -> Program {
        memory::make_mistake(match self.mistake {
            Some(Mistake::Memory(mistake)) => Some(mistake),
            _ => None,
        });
        self.scenario.program(self.mistake)
    }

    pub(super) fn cpus(&self) -> usize {
        self.scenario.cpus.len()
    }

    pub(super) fn replayed(&self, schedule: Schedule, narrate: bool) -> Outcome {
        let outcome = run(&mut Replay::new(schedule), self.cpus(), narrate, &|| self.program());
        outcome.expect("a replay has one run")
    }

    /// The schedule of a finding without the deviations that it does not need.
    pub(super) fn shortened(&self, schedule: Schedule) -> Schedule {
        let mut shortest = schedule;
        let mut index = 0;
        while index < shortest.len() {
            // Leaving one out moves the decisions behind it, so it can only be tried.
            let shorter = self.replayed(shortest.without(index), false);
            if shorter.finding.is_some() && shorter.schedule.len() < shortest.len() {
                (shortest, index) = (shorter.schedule, 0);
            } else {
                index += 1;
            }
        }
        shortest
    }
}
