//! The two sides' counts in tables: interrupts in all, by CPU and by reason, and flushes. A count is that of the run with the
//! median number of interrupts, so that rows add up; where other runs had other numbers, the least and the most stand beside it.
//!
//! The kernels do not count the same things. Ours says for each interrupt which operation sent it; Linux says which CPUs received
//! one, and in a traced run for which of a few reasons it flushed. What a side does not count is shown as `-`, never as zero.

use protocol::report::Report;

use super::trial::{Counts, Trial, typical};
use crate::result::case::Verdict;
use crate::statistics::Spread;
use crate::tables;

const NOT_COUNTED: &str = "-";

/// Interrupts of all CPUs, and how the sides compare.
pub(super) fn interrupts(ours: &[Trial], linux: &[Trial]) -> String {
    type Count = fn(&Trial) -> u64;
    const FOR_TRANSLATIONS: Count = |trial| trial.report.interrupts(trial.run.system);
    const OTHER_CALLS: Count = |trial| trial.report.other_calls(trial.run.system);
    let mut table = tables::plain(&["interrupts of all CPUs", "Ceasefire", "Linux", "Ceasefire to Linux"]);
    tables::align_right(&mut table, &[1, 2, 3]);
    let rows =
        [("for translations", FOR_TRANSLATIONS), ("for membarrier, on Linux other calls too", OTHER_CALLS)];
    for (index, (name, count)) in rows.into_iter().enumerate() {
        let [one, other] =
            [ours, linux].map(|trials| Spread::of(trials.iter().map(|trial| count(trial) as f64)));
        if index > 0 && [one, other].into_iter().flatten().all(|spread| spread.most == 0.0) {
            continue;
        }
        let cell = |trials: &[Trial], spread| {
            typical(trials).map_or(NOT_COUNTED.into(), |trial| with_spread(count(trial), spread))
        };
        let mine_none = index > 0 && one.is_none_or(|spread| spread.most == 0.0);
        let ratio = match one.zip(other) {
            // Linux uses calls for many things; that ours sends none is no merit.
            Some((one, other)) if !mine_none => ratio(one, other),
            _ => NOT_COUNTED.into(),
        };
        table.add_row([name.to_owned(), cell(ours, one), cell(linux, other), ratio]);
    }
    if let Some(linux) = typical(linux) {
        let to_reschedule = linux.report.total("linux", "RES").to_string();
        table.add_row(["to choose another task", NOT_COUNTED, &to_reschedule, NOT_COUNTED]);
    }
    tables::lines(&table)
}

/// "15000", "15000 (14998 to 15003)".
fn with_spread(count: u64, spread: Option<Spread>) -> String {
    match spread {
        Some(spread) if spread.least != spread.most => {
            format!("{count} ({:.0} to {:.0})", spread.least, spread.most)
        }
        _ => count.to_string(),
    }
}

/// How our number of interrupts for translations stands beside Linux's; none when a side has no run.
pub(super) fn standing(ours: &[Trial], linux: &[Trial]) -> Option<Verdict> {
    let interrupts = |trial: &Trial| trial.report.interrupts(trial.run.system) as f64;
    let [ours, linux] = [ours, linux].map(|trials| Spread::of(trials.iter().map(interrupts)));
    Some(Verdict::of_runs(ours?, linux?))
}

/// The medians' ratio, and which side has more.
fn ratio(ours: Spread, linux: Spread) -> String {
    let verdict = match Verdict::of_runs(ours, linux) {
        Verdict::Better => "fewer",
        Verdict::Same => "the same",
        Verdict::Worse => "WORSE",
    };
    match linux.median {
        0.0 => verdict.into(),
        median => format!("{:.2}, {verdict}", ours.median / median),
    }
}

/// Interrupts by CPU; nothing when there is a single one, or nothing was sent.
pub(super) fn by_cpu(ours: &Report, linux: Option<&Report>) -> Option<String> {
    const COLUMNS: [(&str, &str); 3] = [("user", "user"), ("kernel", "kernel"), ("idle", "idle")];
    let any = ours.sum("sent") + linux.map_or(0, |linux| linux.total("linux", "TLB"));
    if ours.cpus < 2 || any == 0 {
        return None;
    }
    let mut header = vec!["interrupts by CPU", "Ceasefire sent", "received"];
    header.extend(COLUMNS.map(|(title, _)| title));
    header.push("Linux received");
    let mut table = tables::plain(&header);
    tables::align_right(&mut table, &(1..header.len()).collect::<Vec<_>>());
    for cpu in 0..ours.cpus as usize {
        let on_cpu = |report: &Report, group: &str, name: Option<&str>| -> u64 {
            let rows = report.group(group).filter(|row| name.is_none_or(|name| row.name == name));
            rows.filter_map(|row| row.per_cpu.get(cpu)).sum()
        };
        let mut cells = vec![on_cpu(ours, "sent", None), on_cpu(ours, "received", None)];
        cells.extend(COLUMNS.map(|(_, name)| on_cpu(ours, "received", Some(name))));
        let theirs = linux.map(|linux| on_cpu(linux, "linux", Some("TLB")));
        let cells = cells.into_iter().map(|count| count.to_string());
        let theirs = theirs.map_or(NOT_COUNTED.into(), |count| count.to_string());
        table.add_row(std::iter::once(format!("CPU {cpu}")).chain(cells).chain([theirs]));
    }
    Some(tables::lines(&table))
}

/// Flushes executed: of whole address spaces, of ranges, and the pages in those.
pub(super) fn flushes(ours: &Report, traced: Option<&Report>) -> String {
    /// What, our rows for whole spaces, ranges and pages, and Linux's reason.
    const ROWS: [(&str, [&str; 3], &str); 4] = [
        ("by the CPU that asks", ["local_full", "local_ranged", "local_pages"], "local_mm_shootdown"),
        ("by those it asks", ["remote_full", "remote_ranged", "remote_pages"], "remote_shootdown"),
        ("at a switch", ["switch_full", "", ""], "task_switch"),
        ("after borrowing", ["lazy_full", "", ""], ""),
    ];
    let mut table = tables::plain(&[
        "flushes",
        "Ceasefire: all",
        "ranges",
        "pages",
        if traced.is_some() { "Linux, traced: all" } else { "Linux: all" },
        "ranges",
        "single pages",
    ]);
    tables::align_right(&mut table, &[1, 2, 3, 4, 5, 6]);
    for (name, own, reason) in ROWS {
        let own = own.map(|row| match row {
            "" => NOT_COUNTED.into(),
            row => ours.total("executed", row).to_string(),
        });
        let theirs = ["full", "range", "page"].map(|extent| match traced {
            Some(report) if !reason.is_empty() => {
                report.total("linux.flush", &format!("{reason}.{extent}")).to_string()
            }
            _ => NOT_COUNTED.into(),
        });
        table.add_row(std::iter::once(name.to_owned()).chain(own).chain(theirs));
    }
    tables::lines(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::System;

    fn linux(interrupts: u64) -> Trial {
        Trial::sample(System::Linux, 0)
            .with("linux", "TLB", [0, interrupts])
            .with("linux", "CAL", [3, interrupts])
            .with("linux", "RES", [1, 1])
    }

    fn ours(interrupts: u64) -> Trial {
        Trial::sample(System::Ceasefire, 0)
            .with("sent", "mprotect", [interrupts, 0])
            .with("received", "user", [0, interrupts])
            .with("executed", "local_pages", [7, 0])
    }

    fn line(table: &str, start: &str) -> Vec<String> {
        let line = table.lines().find(|line| line.trim_start().starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start} in\n{table}"));
        line.trim_start()[start.len()..].split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn fewer_more_and_the_same() {
        let verdict = |one: &[u64], other: &[u64]| {
            let table = interrupts(
                &one.iter().copied().map(ours).collect::<Vec<_>>(),
                &other.iter().copied().map(linux).collect::<Vec<_>>(),
            );
            line(&table, "for translations").join(" ")
        };
        assert_eq!(verdict(&[10, 10, 10], &[20, 20, 21]), "10 20 (20 to 21) 0.50, fewer");
        assert_eq!(verdict(&[30], &[20]), "30 20 1.50, WORSE");
        assert_eq!(verdict(&[1010], &[1000]), "1010 1000 1.01, the same");
        assert_eq!(verdict(&[3], &[0]), "3 0 WORSE");
        assert_eq!(verdict(&[0], &[0]), "0 0 the same");
        assert_eq!(verdict(&[19, 20, 21], &[20, 21, 22]), "20 (19 to 21) 21 (20 to 22) 0.95, the same");
        assert_eq!(verdict(&[3], &[]), "3 - -");
    }

    #[test]
    fn what_a_side_does_not_count_is_no_zero() {
        let table = interrupts(&[ours(1)], &[linux(2)]);
        assert_eq!(line(&table, "to choose another task"), ["-", "2", "-"]);
        assert_eq!(line(&table, "for membarrier, on Linux other calls too"), ["0", "3", "-"]);
        assert!(!interrupts(&[ours(1)], &[]).contains("membarrier"));
        let table = flushes(&ours(1).report, None);
        assert_eq!(line(&table, "by the CPU that asks"), ["0", "0", "7", "-", "-", "-"]);
        let traced = linux(2).with("linux.flush", "remote_shootdown.page", [4, 1]);
        let table = flushes(&ours(1).report, Some(&traced.report));
        assert_eq!(line(&table, "by those it asks"), ["0", "0", "0", "0", "0", "5"]);
        assert_eq!(line(&table, "after borrowing"), ["0", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn each_cpu_has_its_row() {
        let table = by_cpu(&ours(5).report, Some(&linux(9).report)).unwrap();
        assert_eq!(line(&table, "CPU 0"), ["5", "0", "0", "0", "0", "0"]);
        assert_eq!(line(&table, "CPU 1"), ["0", "5", "5", "0", "0", "9"]);
        let mut single = ours(5);
        single.report.cpus = 1;
        assert!(by_cpu(&single.report, None).is_none());
        assert!(by_cpu(&ours(0).report, Some(&linux(0).report)).is_none());
    }
}
