//! Interrupts for each operation: the table of the bench, and a chart over CPUs for each case.

use maud::{Markup, html};

use super::chart::lines::{self, Line, Quantity};
use super::chart::{Figure, Mark, data};
use super::{Shown, head, workloads};
use crate::number;
use crate::result::case::{Case, Count, Verdict, off};
use crate::result::{Document, Mode, System};

/// The table: a row for each case and number of CPUs, the workloads' questions between them. Nothing where nothing was measured.
pub(super) fn table(document: &Document, cases: &[Case<'_>]) -> Option<Markup> {
    let names = with_absent(document, cases);
    (!names.is_empty()).then(|| html! {
        div.wide tabindex="0" role="region" aria-label="Interrupts per operation" {
            table.bench {
                thead {
                    tr.over {
                        th colspan="2" {}
                        th.measured colspan="3" scope="colgroup" { "interrupts per operation" }
                        th colspan="2" {}
                    }
                    tr {
                        th scope="col" { "case" }
                        th.number scope="col" { "CPUs" }
                        th.number scope="col" { "Ceasefire without …" }
                        th.number scope="col" { "Ceasefire" }
                        th.number scope="col" { "Linux" }
                        th.number scope="col" { "bound" }
                        th scope="col" { "Ceasefire beside Linux" }
                    }
                }
                @for workload in names {
                    tbody {
                        tr.workload { th colspan="7" scope="rowgroup" { (workload) (question(document, workload)) } }
                        @for case in cases.iter().filter(|case| case.workload == workload) { (row(case)) }
                        @for absent in document.absent.iter().filter(|absent| absent.workload.as_deref() == Some(workload)) {
                            tr.absent { td colspan="7" { (head::absence(absent)) } }
                        }
                    }
                }
            }
        }
        (modes(cases))
    })
}

/// The workloads with cases, and those of which everything is absent, in the document's order.
fn with_absent<'a>(document: &'a Document, cases: &[Case<'a>]) -> Vec<&'a str> {
    let described = document.workloads.iter().map(|description| description.name.as_str());
    let measured = cases.iter().map(|case| case.workload);
    let absent = document.absent.iter().filter_map(|absent| absent.workload.as_deref());
    let present: Vec<_> = measured.chain(absent).collect();
    let mut names: Vec<&str> = Vec::new();
    for name in described.filter(|name| present.contains(name)).chain(present.iter().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the workload asks, and the source that it reproduces.
fn question(document: &Document, workload: &str) -> Markup {
    let described = document.workloads.iter().find(|description| description.name == workload);
    html! {
        @if let Some(described) = described {
            span.question {
                (described.question.as_ref().unwrap_or(&described.title))
                @if let Some(source) = &described.source { " (source " (source) ")" }
            }
        }
    }
}

fn row(case: &Case<'_>) -> Markup {
    let verdict = case.counts();
    html! {
        tr class=[(verdict == Some(Verdict::Worse)).then_some("worse")] {
            th scope="row" { (case.name()) @if !case.is_exact() { span.weak { " ~" } } }
            td.number { (case.cpus) }
            td.number {
                @for (names, count) in case.without() {
                    div { span.off { (off(names)) } " " (cell(case, Some(count), System::Ceasefire)) }
                }
            }
            td.number.ours { (cell(case, case.ours(), System::Ceasefire)) }
            td.number.linux { (cell(case, case.linux(), System::Linux)) }
            td.number.bound { @if let Some(bound) = case.bound() { (number::count(bound)) } @else { span.weak { "–" } } }
            td { (beside(case, verdict)) }
        }
    }
}

fn cell(case: &Case<'_>, count: Option<Count>, system: System) -> Markup {
    // Counts that vary come from single mode on both sides, and their row says so.
    let usual = if system == System::Linux || !case.is_exact() { Mode::Single } else { Mode::Deterministic };
    html! {
        @match count {
            None => span.weak title="not measured" { "–" },
            Some(count) => {
                (number::count(count.per_operation))
                @if count.mode != usual { sup { (count.mode.name()) } }
            }
        }
    }
}

/// The verdict in words, the bad ones first to be seen.
fn beside(case: &Case<'_>, verdict: Option<Verdict>) -> Markup {
    let (ours, linux) = match (case.ours(), case.linux()) {
        (Some(ours), Some(linux)) => (ours.per_operation, linux.per_operation),
        _ => return html! { span.weak { "not measured on both" } },
    };
    let at_the_bound = case.is_at_the_bound();
    html! {
        @match verdict {
            Some(Verdict::Worse) => strong.worse { "▲ worse than Linux: " (number::change(linux, ours)) },
            Some(Verdict::Better) => { "fewer: " (number::change(linux, ours)) }
            _ => "as many",
        }
        @if at_the_bound { ", at the bound" }
    }
}

fn modes(cases: &[Case<'_>]) -> Markup {
    html! {
        p.weak {
            "Ceasefire counted in deterministic mode, Linux in single mode, unless a raised word names another. –: not measured. "
            "Counts within 2 % of each other are the same."
            @if cases.iter().any(|case| !case.is_exact()) {
                " ~: depends on which thread runs when, varies between runs, and is from single mode on both."
            }
        }
    }
}

/// A chart for each case, those of several results beside each other and on one scale.
pub(super) fn charts(results: &[Shown<'_>]) -> Option<Markup> {
    let figures: Vec<_> =
        workloads(results).into_iter().flat_map(|workload| figures(results, workload)).collect();
    (!figures.is_empty()).then(|| html! { div.charts { @for figure in &figures { (figure.render()) } } })
}

fn figures(results: &[Shown<'_>], workload: &str) -> Vec<Figure> {
    let of_workload = |case: &&Case<'_>| case.workload == workload;
    let mut names: Vec<Option<&str>> = Vec::new();
    for case in results.iter().flat_map(|result| result.cases.iter().filter(of_workload)) {
        if !names.contains(&case.case) {
            names.push(case.case);
        }
    }
    let mut figures = Vec::new();
    for name in names {
        let same = |case: &&Case<'_>| case.workload == workload && case.case == name;
        let most =
            results.iter().flat_map(|result| result.cases.iter().filter(same)).map(most).fold(0.0, f64::max);
        for result in results {
            let cases: Vec<_> = result.cases.iter().filter(same).collect();
            figures.extend(figure(&cases, most, result));
        }
    }
    figures
}

/// The lines of one case over its CPU counts.
fn figure(cases: &[&Case<'_>], most: f64, result: &Shown<'_>) -> Option<Figure> {
    let lines = lines_of(cases);
    if lines.is_empty() {
        return None;
    }
    let mut header = vec!["CPUs"];
    header.extend(lines.iter().map(|line| line.name.as_str()));
    let at = |line: &Line, cpus: u32| {
        let point = line.points.iter().find(|(at, _)| *at == cpus);
        point.map_or_else(|| "–".to_owned(), |(_, count)| number::count(*count))
    };
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|case| {
            let cells = lines.iter().map(|line| at(line, case.cpus));
            std::iter::once(case.cpus.to_string()).chain(cells).collect()
        })
        .collect();
    let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
    Some(Figure {
        title: result.title(cases[0].workload, cases[0].name()),
        description: format!(
            "{} {}: interrupts per operation over the number of CPUs, for {}. The values are in the table below.",
            cases[0].workload,
            cases[0].name(),
            names.join(", ")
        ),
        height: lines::height(),
        drawing: lines::draw(&lines, most, Quantity::Interrupts),
        data: data(&header, &rows),
    })
}

/// The sides that have at least one count.
fn lines_of(cases: &[&Case<'_>]) -> Vec<Line> {
    let line = |mark, name: String, count: &dyn Fn(&Case<'_>) -> Option<f64>| Line {
        mark,
        name,
        points: cases.iter().filter_map(|case| Some((case.cpus, count(case)?))).collect(),
    };
    let mut variants: Vec<&[String]> = Vec::new();
    for (names, _) in cases.iter().flat_map(|case| case.without()) {
        if !variants.contains(&names) {
            variants.push(names);
        }
    }
    let mut lines = vec![
        line(Mark::Bound, "bound".into(), &|case| case.bound()),
        line(Mark::Linux, "Linux".into(), &|case| Some(case.linux()?.per_operation)),
    ];
    lines.extend(variants.into_iter().map(|names| {
        line(Mark::Without, off(names), &|case| {
            Some(case.without().into_iter().find(|(other, _)| *other == names)?.1.per_operation)
        })
    }));
    lines.push(line(Mark::Ours, "Ceasefire".into(), &|case| Some(case.ours()?.per_operation)));
    lines.retain(|line| !line.points.is_empty());
    // A bound alone is no measurement.
    if lines.iter().all(|line| line.mark == Mark::Bound) { Vec::new() } else { lines }
}

/// The largest count of a case.
fn most(case: &Case<'_>) -> f64 {
    let off = case.without().into_iter().map(|(_, count)| count);
    let counts =
        off.chain(case.ours()).chain(case.linux()).map(|count| count.per_operation).chain(case.bound());
    counts.filter(|count| count.is_finite()).fold(0.0, f64::max)
}
