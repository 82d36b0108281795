//! A document as text for the terminal: interrupts, instructions and times, each kind of figure in tables of its own, then in plain
//! sight what is worse than Linux and what was not measured.

use comfy_table::{CellAlignment, Table};

use super::{sources, verdicts};
use crate::mechanisms::usual;
use crate::number;
use crate::result::case::{Case, Verdict, by_workload};
use crate::result::{Document, Record, System};
use crate::tables;

/// For a value that was not measured.
const NONE: &str = "-";

/// Everything that is said of a document. `width` is for those that are not printed to a terminal.
pub(super) fn render(document: &Document, width: Option<u16>) -> String {
    let cases = Case::all_of(document);
    let context = Context { width };
    let sections = [
        context.interrupts(&cases),
        context.instructions(&cases),
        context.times(&cases),
        Some(verdicts::worse(&cases)),
        sources::render(document, &cases),
        verdicts::absences(document),
        verdicts::notes(document),
    ];
    let sections: Vec<String> = sections.into_iter().flatten().collect();
    sections.join("\n\n") + "\n"
}

struct Context {
    width: Option<u16>,
}

impl Context {
    fn table(&self, header: &[&str], numbers: std::ops::Range<usize>) -> Table {
        let mut table = tables::plain(header);
        if let Some(width) = self.width {
            table.set_width(width);
        }
        for column in numbers {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// Interrupts for each operation: without the mechanism concerned, with all, Linux, and the lower bound.
    fn interrupts(&self, cases: &[Case<'_>]) -> Option<String> {
        let header = ["workload (mechanism)", "CPUs", "without", "with", "Linux", "bound", "beside Linux"];
        let mut table = self.table(&header, 1..6);
        for (workload, cases) in by_workload(cases) {
            let mechanism = cases.iter().find_map(without).map(|names| format!(" ({})", mechanisms(names)));
            table.add_row([format!("{workload}{}", mechanism.unwrap_or_default())]);
            for case in cases {
                let off = case.without();
                let off = off.first();
                let mark = if case.is_exact() { "" } else { " ~" };
                table.add_row([
                    name(case) + mark,
                    case.cpus.to_string(),
                    or_none(off.map(|(_, count)| number::count(count.per_operation))),
                    or_none(case.ours().map(|count| number::count(count.per_operation))),
                    or_none(case.linux().map(|count| number::count(count.per_operation))),
                    or_none(case.bound().map(number::count)),
                    beside(case).unwrap_or_default(),
                ]);
            }
        }
        let mark = if cases.iter().any(|case| !case.is_exact()) {
            "\n~: depends on which thread runs when, varies between runs, and is from single mode on both."
        } else {
            ""
        };
        (!table.is_empty()).then(|| {
            format!(
                "INTERRUPTS PER OPERATION, received by all CPUs. Ceasefire without the mechanism named and with all, in\n\
                 deterministic mode; Linux in single mode, as it does not start on the instruction clock with several CPUs.{mark}\n\n{}",
                tables::lines(&table)
            )
        })
    }

    /// Instructions for each operation: ours, and Linux's on one CPU.
    fn instructions(&self, cases: &[Case<'_>]) -> Option<String> {
        let header = ["workload", "CPUs", "without", "with", "Linux", "beside Linux"];
        let mut table = self.table(&header, 1..5);
        for (workload, cases) in by_workload(cases) {
            if cases.iter().any(|case| case.instructions().is_some()) {
                table.add_row([workload]);
            }
            for case in cases.iter().filter(|case| case.instructions().is_some()) {
                let off = without(case).and_then(|names| case.instructions_of(System::Ceasefire, names));
                let linux = case.instructions_of(System::Linux, &[]);
                let (ours, whole) = (case.instructions(), |value: f64| number::whole(value.round() as u64));
                table.add_row([
                    name(case),
                    case.cpus.to_string(),
                    or_none(off.map(whole)),
                    or_none(ours.map(whole)),
                    or_none(linux.map(whole)),
                    linux.zip(ours).map(|(linux, ours)| change(linux, ours)).unwrap_or_default(),
                ]);
            }
        }
        (!table.is_empty()).then(|| {
            format!(
                "INSTRUCTIONS PER OPERATION, of all CPUs together, kernel and program, in deterministic mode. They are\n\
                 compared with Linux's on one CPU, where it starts on the instruction clock.\n\n{}",
                tables::lines(&table)
            )
        })
    }

    /// Times: the ratio to Linux's, pair by pair.
    fn times(&self, cases: &[Case<'_>]) -> Option<String> {
        let header =
            ["workload", "CPUs", "Ceasefire", "Linux", "ratio", "spread", "pairs", "without", "beside Linux"];
        let mut table = self.table(&header, 1..8);
        let is_timed =
            |case: &&Case<'_>| case.timed(System::Ceasefire).or_else(|| case.timed(System::Linux)).is_some();
        for (workload, cases) in by_workload(cases) {
            if cases.iter().any(|case| is_timed(&case)) {
                table.add_row([workload]);
            }
            for case in cases.iter().filter(is_timed) {
                let ratio = case.ratio();
                table.add_row([
                    name(case),
                    case.cpus.to_string(),
                    or_none(time(case.timed(System::Ceasefire)).map(number::time)),
                    or_none(time(case.timed(System::Linux)).map(number::time)),
                    or_none(ratio.map(|ratio| number::ratio(ratio.spread.median))),
                    or_none(ratio.filter(|ratio| ratio.pairs > 1).map(|ratio| {
                        format!(
                            "{} to {}",
                            number::ratio(ratio.spread.least),
                            number::ratio(ratio.spread.most)
                        )
                    })),
                    or_none(ratio.map(|ratio| ratio.pairs.to_string())),
                    or_none(slowdown(case).map(number::ratio)),
                    match ratio.map(|ratio| ratio.verdict()) {
                        Some(Verdict::Worse) => "WORSE".into(),
                        Some(Verdict::Better) => "faster".into(),
                        Some(Verdict::Same) => "not clear".into(),
                        None => String::new(),
                    },
                ]);
            }
        }
        (!table.is_empty()).then(|| {
            format!(
                "TIMES PER OPERATION, work of all CPUs, in single mode. Ratio: Ceasefire to Linux pair by pair (below 1:\n\
                 faster); without: Ceasefire without the mechanism to with it. Emulated times: only ratios mean anything.\n\n{}",
                tables::lines(&table)
            )
        })
    }
}

/// The case's name, below its workload's.
fn name(case: &Case<'_>) -> String {
    format!("  {}", if case.name().is_empty() { "its only case" } else { case.name() })
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.into())
}

/// The mechanisms that were off, as one word.
pub(super) fn mechanisms(names: &[String]) -> String {
    if names.len() == usual().count() { "all".into() } else { names.join("+") }
}

fn without<'a>(case: &Case<'a>) -> Option<&'a [String]> {
    case.records().find(|record| !record.without.is_empty()).map(|record| record.without.as_slice())
}

/// How many times as long ours takes without the mechanism.
fn slowdown(case: &Case<'_>) -> Option<f64> {
    let off = time(case.timed_without(System::Ceasefire, without(case)?))?;
    Some(off / time(case.timed(System::Ceasefire))?)
}

fn time(record: Option<&Record>) -> Option<f64> {
    record?.nanoseconds_per_operation
}

fn change(linux: f64, ours: f64) -> String {
    let change = number::change(linux, ours);
    if ours > linux { format!("WORSE: {change}") } else { change }
}

/// Ours beside Linux in interrupts.
fn beside(case: &Case<'_>) -> Option<String> {
    let (verdict, ours, linux) = (case.counts()?, case.ours()?.per_operation, case.linux()?.per_operation);
    Some(match verdict {
        Verdict::Same => "same".into(),
        Verdict::Better => number::change(linux, ours),
        Verdict::Worse => format!("WORSE: {}", number::change(linux, ours)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Absent, Description, Mode, Run, Sample};
    use std::collections::BTreeMap;

    /// Interrupts, and nanoseconds or instructions, of one record, with a run of its own.
    struct Line(System, &'static [&'static str], Mode, u32, f64, f64, Option<u32>);

    fn add(document: &mut Document, workload: &str, line: &Line) {
        let Line(system, without, mode, cpus, interrupts, time, pair) = *line;
        let id = document.runs.len() as u32;
        let run = Run {
            id,
            system,
            without: without.iter().map(|name| (*name).to_owned()).collect(),
            with: Vec::new(),
            mode,
            seed: None,
            cpus,
            memory_mebibytes: 512,
            board: "q35".into(),
            command: Vec::new(),
            wall_seconds: 1.0,
            load: None,
            pair,
            traced: false,
            report: serde_json::Value::Null,
        };
        let instructions = mode == Mode::Deterministic;
        document.records.push(Record {
            interrupts_per_operation: Some(interrupts),
            bound_per_operation: Some(f64::from(cpus - 1)),
            nanoseconds_per_operation: (!instructions).then_some(time),
            instructions_per_operation: instructions.then_some(time),
            runs: vec![Sample { run: id, figures: BTreeMap::from([("ns_per_op".to_owned(), time)]) }],
            ..Record::unmeasured(workload, &run)
        });
        document.runs.push(run);
    }

    fn described(name: &str, counts_exact: bool) -> Description {
        Description { name: name.into(), source: Some("S3".into()), counts_exact, ..Description::default() }
    }

    fn sample() -> Document {
        use Mode::{Deterministic, Single};
        use System::{Ceasefire, Linux};
        let mut document = Document::new(Vec::new(), Vec::new());
        document.workloads = vec![described("flip", true), described("storm", false)];
        for line in [
            Line(Ceasefire, &[], Deterministic, 4, 3.0, 7000.0, None),
            Line(Ceasefire, &["promotion"], Deterministic, 4, 6.0, 9900.0, None),
            Line(Ceasefire, &[], Single, 4, 3.0, 10_000.0, Some(1)),
            Line(Linux, &[], Single, 4, 6.0, 40_000.0, Some(1)),
            Line(Ceasefire, &["promotion"], Single, 4, 6.0, 20_000.0, Some(1)),
            Line(Ceasefire, &[], Deterministic, 1, 0.0, 7200.0, None),
            Line(Linux, &[], Deterministic, 1, 0.0, 6000.0, None),
        ] {
            add(&mut document, "flip", &line);
        }
        for line in [
            Line(Ceasefire, &[], Deterministic, 4, 9.0, 500.0, None),
            Line(Ceasefire, &[], Single, 4, 5.0, 900.0, Some(2)),
            Line(Linux, &[], Single, 4, 4.0, 600.0, Some(2)),
        ] {
            add(&mut document, "storm", &line);
        }
        let absent = |workload: &str, failed| Absent {
            workload: Some(workload.into()),
            case: None,
            system: Ceasefire,
            cpus: Some(4),
            reason: format!("why {workload}"),
            failed,
        };
        document.absent = vec![absent("lru", false), absent("hang", true)];
        document.notes = vec!["Measured in 1:00 minutes.".into()];
        document
    }

    const WHOLE: &str = "\
INTERRUPTS PER OPERATION, received by all CPUs. Ceasefire without the mechanism named and with all, in
deterministic mode; Linux in single mode, as it does not start on the instruction clock with several CPUs.
~: depends on which thread runs when, varies between runs, and is from single mode on both.

 workload (mechanism)   CPUs   without   with   Linux   bound   beside Linux
-----------------------------------------------------------------------------
 flip (promotion)
   its only case           1         -   0.00    0.00    0.00   same
   its only case           4      6.00   3.00    6.00    3.00   −50 %
 storm
   its only case ~         4         -   5.00    4.00    3.00   WORSE: +25 %
";

    #[test]
    fn a_document_as_a_whole() {
        let text = render(&sample(), Some(110)).replace('\u{a0}', " ");
        assert!(text.starts_with(WHOLE), "{text}");
        for line in [
            "   its only case      1         -   7,200   6,000   WORSE: +20 %",
            "   its only case      4     10.0 µs   40.0 µs   0.25×        -       1     2.00×   faster",
            "  storm on 4 CPUs: 5.00 interrupts per operation instead of 4.00",
            "  flip on 1 CPU: 1.20× the instructions per operation",
            "  storm on 4 CPUs: 1.50× the time per operation",
            "      flip on 4 CPUs: 3.00 interrupts per operation; 6.00 without promotion, 6.00 on Linux; 3.00 at least",
            "FAILED:\n  hang on Ceasefire with 4 CPUs: why hang",
            "Not measured:\n  lru on Ceasefire with 4 CPUs: why lru",
        ] {
            assert!(text.contains(line), "no '{line}' in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
        assert!(text.ends_with("\nMeasured in 1:00 minutes.\n"), "{text}");
    }

    #[test]
    fn without_linux_nothing_is_claimed() {
        let mut document = sample();
        document.records.retain(|record| record.system == System::Ceasefire);
        document.incomplete = Some("interrupted after 3 of 9 runs".into());
        let text = render(&document, Some(110));
        assert!(text.contains("Nothing could be compared with Linux."), "{text}");
        assert!(!text.contains("WORSE") && !text.contains("  faster"), "{text}");
        assert!(text.contains("INCOMPLETE: interrupted after 3 of 9 runs"), "{text}");
    }

    #[test]
    fn an_empty_document_is_no_table() {
        let text = render(&Document::new(Vec::new(), Vec::new()), Some(110));
        assert_eq!(text, "Nothing could be compared with Linux.\n");
    }
}
