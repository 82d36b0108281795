//! Times: ratios to Linux's, pair by pair, as charts and as a table.

use maud::{Markup, html};

use super::chart::ratios::{self, Group, Scale};
use super::chart::{Figure, data, sheets};
use super::{Shown, workloads};
use crate::number;
use crate::result::case::{Case, Ratio, Verdict, by_workload, cpus, off};
use crate::result::{Mode, Record, System};

/// A chart for each workload timed on both sides; all have the same axis. Nothing if there is none.
pub(super) fn charts(results: &[Shown<'_>]) -> Option<Markup> {
    let scale = Scale::over(results.iter().flat_map(|result| result.cases.iter().filter_map(Case::ratio)));
    let mut figures = Vec::new();
    for workload in workloads(results) {
        for result in results {
            let cases: Vec<_> = result.cases.iter().filter(|case| case.workload == workload).collect();
            figures.extend(figures_of(result, workload, &cases, scale));
        }
    }
    (!figures.is_empty())
        .then(|| html! { div.charts.packed { @for figure in &figures { (figure.render()) } } })
}

/// One figure, or as many as sheets are needed.
fn figures_of(result: &Shown<'_>, workload: &str, cases: &[&Case<'_>], scale: Scale) -> Vec<Figure> {
    let groups: Vec<_> = cases
        .chunk_by(|one, next| one.case == next.case)
        .map(|cases| Group {
            heading: cases[0].name().to_owned(),
            rows: cases.iter().filter_map(|case| Some((cpus(case.cpus), case.ratio()?))).collect(),
        })
        .filter(|group| !group.rows.is_empty())
        .collect();
    let sheets = sheets(groups, ratios::height);
    sheets.iter().map(|groups| figure(result, workload, groups, scale)).collect()
}

fn figure(result: &Shown<'_>, workload: &str, groups: &[Group], scale: Scale) -> Figure {
    let rows: Vec<_> = groups
        .iter()
        .flat_map(|group| group.rows.iter().map(move |(name, ratio)| (group, name, ratio)))
        .map(|(group, name, ratio)| {
            vec![
                format!("{} {name}", group.heading).trim().to_owned(),
                number::ratio(ratio.spread.least),
                number::ratio(ratio.spread.median),
                number::ratio(ratio.spread.most),
                ratios::pairs(ratio.pairs),
            ]
        })
        .collect();
    Figure {
        title: result.title(workload, ""),
        description: format!(
            "{workload}: time per operation on Ceasefire divided by Linux's, median and spread. The values are in the table below."
        ),
        height: ratios::height(groups),
        drawing: ratios::draw(groups, scale),
        data: data(&["case", "least", "median", "most", "from"], &rows),
    }
}

/// All times; nothing if none was measured.
pub(super) fn table(cases: &[Case<'_>]) -> Option<Markup> {
    let timed = |case: &&Case<'_>| case.timed(System::Ceasefire).or(case.timed(System::Linux)).is_some();
    if !cases.iter().any(|case| timed(&case)) {
        return None;
    }
    Some(html! {
        div.wide tabindex="0" role="region" aria-label="Time per operation" {
            table.bench {
                thead {
                    tr.over {
                        th colspan="2" {}
                        th.measured colspan="2" scope="colgroup" { "time per operation" }
                        th colspan="3" {}
                    }
                    tr {
                        th scope="col" { "case" }
                        th.number scope="col" { "CPUs" }
                        th.number scope="col" { "Ceasefire" }
                        th.number scope="col" { "Linux" }
                        th.number scope="col" { "ratio (spread)" }
                        th scope="col" { "Ceasefire beside Linux" }
                        th.number scope="col" { "Ceasefire without … ÷ with" }
                    }
                }
                @for (workload, cases) in by_workload(cases) {
                    @if cases.iter().any(|case| timed(&case)) {
                        tbody {
                            tr.workload { th colspan="7" scope="rowgroup" { (workload) } }
                            @for case in cases.iter().filter(timed) { (row(case)) }
                        }
                    }
                }
            }
        }
    })
}

fn row(case: &Case<'_>) -> Markup {
    let ratio = case.ratio();
    let verdict = ratio.map(|ratio| ratio.verdict());
    html! {
        tr class=[(verdict == Some(Verdict::Worse)).then_some("worse")] {
            th scope="row" { (case.name()) }
            td.number { (case.cpus) }
            td.number.ours { (time(case.timed(System::Ceasefire))) }
            td.number.linux { (time(case.timed(System::Linux))) }
            td.number { @if let Some(ratio) = ratio { (spread(&ratio)) } @else { span.weak { "–" } } }
            td {
                @match verdict {
                    Some(Verdict::Worse) => strong.worse { "▲ slower than Linux" },
                    Some(Verdict::Better) => "faster",
                    Some(Verdict::Same) => "no clear difference",
                    None => span.weak { "not measured on both" },
                }
            }
            td.number {
                @for (names, ratio) in slowdowns(case) {
                    div { span.off { (off(names)) } " " (number::ratio(ratio)) }
                }
            }
        }
    }
}

/// How many times as long ours takes with mechanisms off.
fn slowdowns<'a>(case: &Case<'a>) -> Vec<(&'a [String], f64)> {
    let time = |without: &[String]| case.timed_without(System::Ceasefire, without)?.nanoseconds_per_operation;
    let Some(with) = time(&[]).filter(|time| *time > 0.0) else { return Vec::new() };
    case.variants().into_iter().filter_map(|names| Some((names, time(names)? / with))).collect()
}

fn time(record: Option<&Record>) -> Markup {
    html! {
        @match record.and_then(|record| Some((record, record.nanoseconds_per_operation?))) {
            None => span.weak title="not measured" { "–" },
            Some((record, median)) => {
                (number::time(median))
                @if record.mode != Mode::Single { sup { (record.mode.name()) } }
            }
        }
    }
}

fn spread(ratio: &Ratio) -> Markup {
    html! {
        strong { (number::ratio(ratio.spread.median)) }
        @if ratio.spread.least != ratio.spread.most {
            span.weak { " (" (number::ratio(ratio.spread.least)) " to " (number::ratio(ratio.spread.most)) ")" }
        }
    }
}
