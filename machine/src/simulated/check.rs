//! Explores scenarios and past bugs, tells how it goes, and sums up.

use std::time::Instant;

use explorer::{Exhaustive, Outcome, Priorities, Random, Replay, Schedule, explore, run};

use super::past_bug::{Mistake, PastBug};
use super::report::{PastBugResult, Report, ScenarioResult};
use super::scenario::Scenario;
use super::{past_bugs, scenarios};

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Quick,
    Normal,
    Deep,
}

impl Level {
    fn name(self) -> &'static str {
        ["quick", "normal", "deep"][self as usize]
    }

    /// Schedules at random for each scenario, of each of two kinds.
    fn random_schedules(self) -> u64 {
        [200, 2_000, 50_000][self as usize]
    }
}

/// A past bug is looked for up to this price.
const HIGHEST_PRICE: u8 = 4;
/// And for no more schedules than this.
const MOST_SCHEDULES: u64 = 300_000;

/// What is asked for.
#[derive(Debug)]
pub struct Check {
    pub(super) level: Level,
    pub(super) names: Vec<String>,
    pub(super) seed: u64,
    pub(super) replay: Option<String>,
    pub(super) json: Option<std::path::PathBuf>,
    pub(super) table: Option<std::path::PathBuf>,
}

/// One thing to explore: a scenario, with the real code or with a mistake in it.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    scenario: &'static Scenario,
    mistake: Option<Mistake>,
}

impl Subject {
    fn of_bug(bug: &'static PastBug) -> Self {
        Subject { name: bug.name, scenario: bug.scenario, mistake: Some(bug.mistake) }
    }

    fn of_scenario(scenario: &'static Scenario) -> Self {
        Subject { name: scenario.name, scenario, mistake: None }
    }

    fn named(name: &str) -> Option<Self> {
        let bug = past_bugs::ALL.iter().find(|bug| bug.name == name);
        bug.map(|bug| Self::of_bug(bug)).or_else(|| scenarios::named(name).map(Self::of_scenario))
    }

    fn program(&self) -> explorer::Program {
        memory::make_mistake(match self.mistake {
            Some(Mistake::Memory(mistake)) => Some(mistake),
            _ => None,
        });
        self.scenario.program(self.mistake.and_then(Mistake::fault))
    }

    fn cpus(&self) -> usize {
        self.scenario.cpus.len()
    }

    fn replayed(&self, schedule: Schedule, narrate: bool) -> Outcome {
        let outcome = run(&mut Replay::new(schedule), self.cpus(), narrate, &|| self.program());
        outcome.expect("a replay has one run")
    }

    /// The schedule of a finding without the deviations that it does not need.
    fn shortened(&self, schedule: Schedule) -> Schedule {
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

/// Runs the check; says whether all is as it should be.
pub fn main(check: &Check) -> Result<bool, String> {
    silence_panics();
    if let Some(token) = &check.replay {
        return replay(token);
    }
    let started = Instant::now();
    let (chosen_scenarios, chosen_bugs) = choose(&check.names)?;
    let mut report = Report { schema: "ceasefire.check/1", level: check.level.name(), ..Report::default() };
    println!(
        "{:<40} {:>6} {:>10} {:>10} {:>8} {:>8}  result",
        "scenario", "price", "schedules", "states", "random", "seconds"
    );
    for scenario in chosen_scenarios {
        report.scenarios.push(check_scenario(scenario, check));
    }
    println!("\n{:<40} {:>6} {:>10} {:>8}  found in", "past bug", "price", "schedules", "seconds");
    for bug in chosen_bugs {
        report.past_bugs.push(check_bug(bug));
    }
    report.seconds = started.elapsed().as_secs_f64();
    if let Some(file) = &check.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if let Some(file) = &check.table {
        std::fs::write(file, report.table())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(sum_up(&report))
}

fn choose(names: &[String]) -> Result<(Vec<&'static Scenario>, Vec<&'static PastBug>), String> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str()));
    let scenarios: Vec<_> = scenarios::ALL.iter().copied().filter(|scenario| wanted(scenario.name)).collect();
    let bugs: Vec<_> = past_bugs::ALL.iter().copied().filter(|bug| wanted(bug.name)).collect();
    if scenarios.is_empty() && bugs.is_empty() {
        return Err(format!("no scenario and no past bug has '{}' in its name", names.join("' or '")));
    }
    Ok((scenarios, bugs))
}

fn check_scenario(scenario: &'static Scenario, check: &Check) -> ScenarioResult {
    let subject = Subject::of_scenario(scenario);
    let started = Instant::now();
    let bound = scenario.bounds[check.level as usize];
    let mut exhaustive = Exhaustive::new(bound);
    let (schedules, mut finding) = explored(&mut exhaustive, &subject);
    let states = exhaustive.states();
    let mut random_schedules = 0;
    let mut seed = None;
    if finding.is_none() {
        let mut random = Random::new(check.seed, check.level.random_schedules());
        let (runs, found) = explored(&mut random, &subject);
        seed = found.as_ref().map(|_| random.seed());
        (finding, random_schedules) = (found, runs);
    }
    if finding.is_none() {
        let mut priorities = Priorities::new(check.seed, check.level.random_schedules(), 4);
        let (runs, found) = explored(&mut priorities, &subject);
        seed = found.as_ref().map(|_| priorities.seed());
        finding = found;
        random_schedules += runs;
    }
    let told = finding.map(|outcome| tell(&subject, outcome, seed));
    let seconds = started.elapsed().as_secs_f64();
    let word = if told.is_none() { "ok" } else { "FAILED" };
    println!(
        "{:<40} {bound:>6} {schedules:>10} {states:>10} {random_schedules:>8} {seconds:>8.2}  {word}",
        scenario.name
    );
    let (finding, replay) = told.unzip();
    let passed = finding.is_none();
    let name = scenario.name;
    ScenarioResult { name, passed, bound, schedules, states, random_schedules, seconds, finding, replay }
}

fn explored(strategy: &mut dyn explorer::Strategy, subject: &Subject) -> (u64, Option<Outcome>) {
    explore(strategy, subject.cpus(), &|| subject.program(), |_| true)
}

/// Shortens what was found and tells it; what `--replay` takes comes with it.
fn tell(subject: &Subject, outcome: Outcome, seed: Option<u64>) -> (String, String) {
    let schedule = subject.shortened(outcome.schedule);
    let sentence = outcome.finding.map(|finding| finding.sentence).unwrap_or_default();
    let token = format!("{}:{schedule}", subject.name);
    if subject.mistake.is_none() {
        eprintln!("\n{}: {sentence}", subject.name);
        if let Some(seed) = seed {
            eprintln!("  found with seed {seed}");
        }
        eprintln!("  ./ceasefire check --replay {token}\n");
        narrate(&subject.replayed(schedule, true));
    }
    (sentence, token)
}

fn check_bug(bug: &'static PastBug) -> PastBugResult {
    let subject = Subject::of_bug(bug);
    let started = Instant::now();
    let mut schedules = 0;
    let mut found = None;
    let mut price = 0;
    for bound in 0..=HIGHEST_PRICE {
        let few_enough = |runs| schedules + runs < MOST_SCHEDULES;
        let mut exhaustive = Exhaustive::new(bound);
        let (runs, outcome) = explore(&mut exhaustive, subject.cpus(), &|| subject.program(), few_enough);
        (schedules, price) = (schedules + runs, bound);
        if outcome.is_some() || schedules >= MOST_SCHEDULES {
            found = outcome;
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let told = found.map(|outcome| tell(&subject, outcome, None));
    let as_expected = told.as_ref().is_some_and(|(sentence, _)| sentence.starts_with(bug.breaks));
    let word = match &told {
        None => "NOT FOUND",
        Some(_) if !as_expected => "FOUND AS SOMETHING ELSE",
        Some(_) => bug.scenario.name,
    };
    println!("{:<40} {price:>6} {schedules:>10} {seconds:>8.2}  {word}", bug.name);
    if let (false, Some((sentence, token))) = (as_expected, &told) {
        println!("    {sentence}\n    {token}");
    }
    let (finding, replay) = told.unzip();
    PastBugResult {
        name: bug.name,
        source: bug.source,
        scenario: bug.scenario.name,
        found: as_expected,
        price,
        schedules,
        seconds,
        finding,
        replay,
    }
}

fn sum_up(report: &Report) -> bool {
    let failed = report.scenarios.iter().filter(|scenario| !scenario.passed).count();
    let missed = report.past_bugs.iter().filter(|bug| !bug.found).count();
    let schedules: u64 =
        report.scenarios.iter().map(|result| result.schedules + result.random_schedules).sum();
    println!(
        "\n{} scenarios, {failed} failed, {schedules} schedules; {} past bugs, {missed} missed; {:.0} s",
        report.scenarios.len(),
        report.past_bugs.len(),
        report.seconds
    );
    failed == 0 && missed == 0
}

/// Makes one run again and tells it line by line.
fn replay(token: &str) -> Result<bool, String> {
    let (name, schedule) = token.split_once(':').unwrap_or((token, "-"));
    let subject = Subject::named(name).ok_or(format!("there is no scenario and no past bug '{name}'"))?;
    let outcome = subject.replayed(schedule.parse()?, true);
    println!("{name}: {}\n", subject.scenario.about);
    narrate(&outcome);
    if let Some(finding) = &outcome.finding {
        println!("\n{}", finding.sentence);
    } else {
        println!("\nnothing was found in {} steps", outcome.steps);
    }
    Ok(outcome.finding.is_none() || subject.mistake.is_some())
}

fn narrate(outcome: &Outcome) {
    for (number, (line, picture)) in outcome.story.iter().enumerate() {
        println!("{:>4}  {line:<78} {picture}", number + 1);
    }
}

/// A failed assertion of the code under check is a finding, which is told elsewhere.
fn silence_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        if !explorer::is_exploring() {
            before(information);
        }
    }));
}

impl Check {
    /// From the words of a command line.
    ///
    /// # Errors
    /// A sentence about the first word that makes no sense.
    pub fn from_arguments(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut check =
            Check { level: Level::Normal, names: Vec::new(), seed: 1, replay: None, json: None, table: None };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("'{word}' needs a value"));
            match word.as_str() {
                "--quick" => check.level = Level::Quick,
                "--deep" => check.level = Level::Deep,
                "--replay" => check.replay = Some(value()?),
                "--json" => check.json = Some(value()?.into()),
                "--table" => check.table = Some(value()?.into()),
                "--seed" => check.seed = value()?.parse().map_err(|_| "a seed is a number".to_owned())?,
                other if other.starts_with('-') => return Err(format!("there is no option '{other}'")),
                _ => check.names.push(word),
            }
        }
        Ok(check)
    }
}
