//! One scenario explored as far as its first finding: for those who ask many times, as `mutation/` does of each mutant.

use explorer::{Exhaustive, Priorities, Random, Strategy, explore};

use super::scenarios;

/// The names of all scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    scenarios::ALL.iter().map(|scenario| scenario.name)
}

/// So many schedules of each of two kinds are tried at random.
const AT_RANDOM: u64 = 30;

/// Explores a scenario up to one price less than `--quick` does, and then some schedules at random. Says the first finding.
///
/// # Errors
/// There is no such scenario.
pub fn probe(name: &str) -> Result<Option<String>, String> {
    let scenario = scenarios::named(name).ok_or(format!("there is no scenario '{name}'"))?;
    memory::make_mistake(None);
    let price = scenario.bounds[0].saturating_sub(1).max(1);
    let strategies: [Box<dyn Strategy>; 3] = [
        Box::new(Exhaustive::new(price)),
        Box::new(Random::new(1, AT_RANDOM)),
        Box::new(Priorities::new(1, AT_RANDOM, 4)),
    ];
    for mut strategy in strategies {
        let program = || scenario.program(None);
        let (_, found) = explore(&mut *strategy, scenario.cpus.len(), &program, |_| true);
        if let Some(finding) = found.and_then(|outcome| outcome.finding) {
            return Ok(Some(finding.sentence));
        }
    }
    Ok(None)
}
