//! The page of predictions: the same charts and tables as for measurements, and in plain sight that nothing here was measured.

use maud::{Markup, html};

use super::chart::lines::{self, Line, Quantity};
use super::chart::{Figure, Mark, data};
use crate::number;
use crate::predict::{Document, Record, Series, System};

/// The page's body.
pub(super) fn body(document: &Document) -> Markup {
    html! {
        header {
            p.kicker { "Ceasefire" }
            h1 { "Predictions" }
            p.lead { "What keeping translations coherent would cost on machines of other sizes, under other kernels, by a simulation." }
            div.notice role="note" {
                p {
                    strong { "Nothing on this page was measured. " }
                    "The model's parameters are below, each with its source; docs/results/predictions.md holds it against what others have measured."
                }
            }
            (facts(document))
        }
        main {
            section #policies { h2 { "Who is compared" } (policies(&document.policies)) }
            section #interrupts {
                h2 { "Interrupts per operation over CPUs" }
                (charts(document, &INTERRUPTS))
            }
            section #times {
                h2 { "Time per operation over CPUs" }
                p { "From the end of one operation of a thread to the end of its next. The scale is logarithmic." }
                (charts(document, &TIME))
            }
            section #figures { h2 { "All figures" } (table(document)) }
            section #parameters { h2 { "What everything costs" } (parameters(document)) }
        }
    }
}

/// What a chart shows.
struct Shown {
    quantity: Quantity,
    value: fn(&Record) -> f64,
    text: fn(f64) -> String,
}

const INTERRUPTS: Shown = Shown {
    quantity: Quantity::Interrupts,
    value: |record| record.interrupts_per_operation,
    text: number::count,
};
const TIME: Shown = Shown {
    quantity: Quantity::Nanoseconds,
    value: |record| record.nanoseconds_per_operation,
    text: number::time,
};

fn facts(document: &Document) -> Markup {
    let chosen: Vec<String> = document
        .parameters
        .iter()
        .filter(|parameter| parameter.basis == "chosen")
        .map(|parameter| format!("{} = {} {}", parameter.name, parameter.value, parameter.unit))
        .collect();
    let commit = document.versions.commit.as_deref().unwrap_or("not known");
    let rows = [
        ("CPUs", document.machine.clone()),
        ("Other than usual", if chosen.is_empty() { "nothing".to_owned() } else { chosen.join(", ") }),
        ("Seed", document.seed.to_string()),
        ("Model", format!("Ceasefire {}, commit {commit}", document.versions.ceasefire)),
    ];
    html! {
        div.wide tabindex="0" role="region" aria-label="What was simulated" {
            table.facts { tbody { @for (name, fact) in rows { tr { th scope="row" { (name) } td { (fact) } } } } }
        }
    }
}

fn policies(policies: &[System]) -> Markup {
    html! {
        dl.meanings {
            @for policy in policies {
                div {
                    dt { strong { (policy.name) } @if !policy.mark.is_empty() { " " strong.worse { (policy.mark) } } }
                    dd { (policy.meaning) }
                }
            }
        }
    }
}

/// The mark of a policy. Those of one kind share one; their names tell them apart.
fn mark(name: &str) -> Mark {
    match name {
        "ceasefire" => Mark::Ours,
        "linux" => Mark::Linux,
        "linux-2015" => Mark::Older,
        "broadcast" => Mark::Hardware,
        "lazy-free" => Mark::Unsound,
        _ => Mark::Without,
    }
}

fn charts(document: &Document, shown: &Shown) -> Markup {
    let figures = document.series().into_iter().map(|series| figure(document, &series, shown));
    html! { div.charts { @for figure in figures { (figure.render()) } } }
}

fn figure(document: &Document, series: &Series<'_>, shown: &Shown) -> Figure {
    let mut lines: Vec<Line> = document.policies.iter().map(|policy| line(series, policy, shown)).collect();
    let bounds = series.records.iter().filter(|record| record.system == document.policies[0].name);
    let bounds: Vec<(u32, f64)> =
        bounds.filter_map(|record| Some((record.cpus, record.bound_per_operation?))).collect();
    if let (Quantity::Interrupts, false) = (shown.quantity, bounds.is_empty()) {
        lines.insert(0, Line { mark: Mark::Bound, name: "bound".to_owned(), points: bounds });
    }
    let mut header = vec!["CPUs"];
    header.extend(lines.iter().map(|line| line.name.as_str()));
    let rows: Vec<Vec<String>> = series
        .cpus()
        .into_iter()
        .map(|cpus| {
            let at = |line: &Line| {
                let point = line.points.iter().find(|(at, _)| *at == cpus);
                point.map_or_else(|| "–".to_owned(), |(_, value)| (shown.text)(*value))
            };
            std::iter::once(cpus.to_string()).chain(lines.iter().map(at)).collect()
        })
        .collect();
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    Figure {
        title: html! { (series.workload) @if !series.family.is_empty() { span.case { " " (series.family) } } },
        description: format!(
            "{} {}: predicted {} over the number of CPUs, for {}. The values are in the table below.",
            series.workload,
            series.family,
            shown.quantity.unit(),
            names.join(", ")
        ),
        height: lines::height(),
        data: data(&header, &rows),
        drawing: lines::draw(&lines, 0.0, shown.quantity),
    }
}

fn line(series: &Series<'_>, policy: &System, shown: &Shown) -> Line {
    let name =
        if policy.mark == "UNSOUND" { format!("{} (unsound)", policy.name) } else { policy.name.clone() };
    let of_policy = series.records.iter().filter(|record| record.system == policy.name);
    let points = of_policy.map(|record| (record.cpus, (shown.value)(record))).collect();
    Line { mark: mark(&policy.name), name, points }
}

fn table(document: &Document) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="All predictions" {
            table.bench {
                thead {
                    tr {
                        th scope="col" { "policy" }
                        th.number scope="col" { "CPUs" }
                        th.number scope="col" { "interrupts per operation" }
                        th.number scope="col" { "bound" }
                        th.number scope="col" { "time per operation" }
                        th.number scope="col" { "a flush, half of them" }
                        th.number scope="col" { "99 of 100" }
                        th.number scope="col" { "time in handlers" }
                    }
                }
                @for series in document.series() {
                    tbody {
                        tr.workload { th colspan="8" scope="rowgroup" { (series.workload) " " (series.family) (operation(document, series.workload)) } }
                        @for record in &series.records { (row(document, record)) }
                    }
                }
            }
        }
    }
}

fn operation(document: &Document, workload: &str) -> Markup {
    let described = document.workloads.iter().find(|described| described.workload == workload);
    html! { @if let Some(described) = described { span.question { (described.operation) } } }
}

fn row(document: &Document, record: &Record) -> Markup {
    let figure = |name: &str| record.figures.get(name).copied().unwrap_or(0.0);
    let policy = document.policies.iter().find(|policy| policy.name == record.system);
    let marked = policy.filter(|policy| !policy.mark.is_empty());
    html! {
        tr {
            th scope="row" { (record.system) @if let Some(policy) = marked { " " span.weak { (policy.mark) } } }
            td.number { (record.cpus) }
            td.number { (number::count(record.interrupts_per_operation)) }
            td.number.bound { @if let Some(bound) = record.bound_per_operation { (number::count(bound)) } @else { span.weak { "–" } } }
            td.number { (number::time(record.nanoseconds_per_operation)) }
            td.number { (number::time(figure("wait_median_ns"))) }
            td.number { (number::time(figure("wait_99_ns"))) }
            td.number { (format!("{:.1}\u{a0}%", figure("interrupted_share") * 100.0)) }
        }
    }
}

fn parameters(document: &Document) -> Markup {
    html! {
        p { "Cited: read in a publication. Derived: by arithmetic from one. Fitted: chosen so that a published figure comes out. Assumed: nobody published it." }
        div.wide tabindex="0" role="region" aria-label="Parameters" {
            table {
                thead { tr { @for name in ["parameter", "value", "unit", "", "source", "meaning"] { th scope="col" { (name) } } } }
                tbody {
                    @for parameter in &document.parameters {
                        tr {
                            th.name scope="row" { code { (parameter.name) } }
                            td.number { (parameter.value) }
                            td { (parameter.unit) }
                            td { (parameter.basis) }
                            td { (parameter.source) }
                            td { (parameter.meaning) }
                        }
                    }
                }
            }
        }
    }
}
