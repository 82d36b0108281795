//! Times of both sides: medians with their spread, and the ratio pair by pair.
//!
//! In single mode all CPUs take turns on one host thread, so a time is the work of all of them together; the two sides' times may
//! be compared with each other and with nothing else. On the instruction clock no time passes but that of instructions, and a side
//! on that clock is not compared with one that is not.

use super::trial::Trial;
use crate::number;
use crate::result::Mode;
use crate::result::case::{Ratio, Verdict};
use crate::statistics::Spread;
use crate::tables;

/// One kind of time.
type Kind = (&'static str, fn(&Trial) -> Option<f64>);

const KINDS: [Kind; 4] = [
    ("elapsed", |trial| Some(trial.wall())),
    ("CPU: program", |trial| Some(trial.report.processor_time?.user as f64)),
    ("CPU: kernel", |trial| Some(trial.report.processor_time?.system as f64)),
    ("CPU: both", |trial| trial.report.processor_time.map(|time| (time.user + time.system) as f64)),
];

/// The table.
pub(super) fn table(ours: &[Trial], linux: &[Trial]) -> String {
    let mut table = tables::plain(&["time", "Ceasefire", "Linux", "Ceasefire to Linux"]);
    tables::align_right(&mut table, &[1, 2, 3]);
    for (name, kind) in KINDS {
        if ours.iter().chain(linux).all(|trial| kind(trial).is_none()) {
            continue;
        }
        let cell = |trials: &[Trial]| {
            let spread = Spread::of(trials.iter().filter_map(kind));
            spread.map_or("-".into(), |spread| measured(spread, trials.first().map(|trial| trial.run.mode)))
        };
        let ratio = ratio(ours, linux, kind).map_or("-".into(), in_words);
        table.add_row([name.to_owned(), cell(ours), cell(linux), ratio]);
    }
    tables::lines(&table)
}

/// The ratio of the program's time, where the sides may be compared.
pub(super) fn of_program(ours: &[Trial], linux: &[Trial]) -> Option<Ratio> {
    ratio(ours, linux, KINDS[0].1)
}

/// "0.49 (0.47 to 0.51), faster".
pub(super) fn in_words(ratio: Ratio) -> String {
    let verdict = match ratio.verdict() {
        Verdict::Better => "faster",
        Verdict::Worse => "SLOWER",
        Verdict::Same => "no clear difference",
    };
    let Spread { least, median, most } = ratio.spread;
    match ratio.pairs {
        1 => format!("{median:.2} in one pair, which is too few to tell"),
        _ => format!("{median:.2} ({least:.2} to {most:.2}), {verdict}"),
    }
}

/// Pair by pair, where both are of the same mode and time passes in it.
fn ratio(ours: &[Trial], linux: &[Trial], kind: fn(&Trial) -> Option<f64>) -> Option<Ratio> {
    let other_of = |one: &Trial| {
        let same_mode = one.run.mode != Mode::Deterministic;
        linux
            .iter()
            .find(|other| same_mode && other.run.pair == one.run.pair && other.run.mode == one.run.mode)
    };
    let times = ours.iter().filter_map(|one| Some((kind(one)?, kind(other_of(one)?)?)));
    let pairs: Vec<_> = times.filter(|(_, other)| *other > 0.0).collect();
    let spread = Spread::of_ratios(pairs.iter().copied())?;
    Some(Ratio { spread, pairs: pairs.len() })
}

/// A median with its spread, in the unit that suits it.
fn measured(spread: Spread, mode: Option<Mode>) -> String {
    if mode == Some(Mode::Deterministic) {
        return format!("{:.0} instructions", spread.median);
    }
    let [least, median, most] = [spread.least, spread.median, spread.most].map(number::time);
    // The unit once, if both ends have the same.
    let unit = |text: &str| text.split('\u{a0}').nth(1).map(str::to_owned);
    let from =
        if unit(&least) == unit(&most) { least.split('\u{a0}').next().unwrap_or(&least) } else { &least };
    if least == most { median } else { format!("{median} ({from} to {most})") }
}

/// The host's load before the runs, and whether that is a reason for doubt.
pub(super) fn load(trials: &[&Trial]) -> Option<String> {
    let load = Spread::of(trials.iter().filter_map(|trial| trial.run.load))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let range = if load.least == load.most {
        format!("{:.2}", load.least)
    } else {
        format!("{:.2} to {:.2}", load.least, load.most)
    };
    // The emulator's own thread is one of them.
    let doubt = if load.most > cores as f64 + 0.5 {
        "; it was busier than that, so doubt the times (counts do not suffer)"
    } else {
        ""
    };
    let plural = if cores == 1 { "core" } else { "cores" };
    Some(format!("Load of the host before the runs: {range}, on {cores} {plural}{doubt}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::System;

    fn trial(system: System, pair: u32, milliseconds: u64) -> Trial {
        let mut trial = Trial::sample(system, pair);
        trial.report.clock.program_end = trial.report.clock.program_start + milliseconds * 1_000_000;
        trial
    }

    fn both(times: &[(u64, u64)]) -> (Vec<Trial>, Vec<Trial>) {
        let side = |system, times: Vec<u64>| -> Vec<Trial> {
            times.into_iter().enumerate().map(|(pair, time)| trial(system, pair as u32, time)).collect()
        };
        let (ours, linux) = times.iter().copied().unzip();
        (side(System::Ceasefire, ours), side(System::Linux, linux))
    }

    #[test]
    fn times_have_units_and_ratios_their_verdict() {
        let (ours, linux) = both(&[(10, 20), (12, 30), (11, 24)]);
        let table = table(&ours, &linux);
        let cells = table.replace('\u{a0}', " ");
        assert!(cells.contains("11.0 ms (10.0 to 12.0 ms)"), "{table}");
        assert!(cells.contains("24.0 ms (20.0 to 30.0 ms)"), "{table}");
        assert!(table.contains("0.46 (0.40 to 0.50), faster"), "{table}");
        let verdict = |times: &[(u64, u64)]| {
            let (ours, linux) = both(times);
            in_words(of_program(&ours, &linux).unwrap())
        };
        assert_eq!(verdict(&[(30, 10), (20, 10)]), "2.50 (2.00 to 3.00), SLOWER");
        assert_eq!(verdict(&[(9, 10), (11, 10)]), "1.00 (0.90 to 1.10), no clear difference");
        assert_eq!(verdict(&[(9, 10)]), "0.90 in one pair, which is too few to tell");
    }

    #[test]
    fn only_runs_of_one_pair_and_one_clock_are_compared() {
        let (mut ours, mut linux) = both(&[(10, 20), (10, 40)]);
        linux.remove(0);
        assert_eq!(of_program(&ours, &linux).unwrap().spread.median, 0.25);
        ours[1].run.mode = Mode::Deterministic;
        assert!(of_program(&ours, &linux).is_none());
        assert!(table(&ours[1..], &linux).contains("10000000 instructions"));
        assert!(table(&ours, &[]).contains(" -"));
    }

    #[test]
    fn a_busy_host_is_named() {
        let mut busy = trial(System::Linux, 0, 1);
        busy.run.load = Some(1000.0);
        let quiet = trial(System::Linux, 0, 1);
        assert!(
            load(&[&quiet, &busy]).unwrap().contains("0.50 to 1000.00")
                && load(&[&busy]).unwrap().contains("doubt")
        );
        assert!(!load(&[&quiet]).unwrap().contains("doubt"));
        assert_eq!(load(&[]), None);
    }
}
