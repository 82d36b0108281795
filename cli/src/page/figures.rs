//! What else the workloads measured, by their own names, with what those mean.
//!
//! The same figure is ticks of the host's clock in single mode and instructions in deterministic mode, so each mode has a column of
//! its own and no two are divided.

use maud::{Markup, html};

use crate::number;
use crate::result::case::{Case, by_workload, off};
use crate::result::{Document, Mode, Record, System};

/// Keys of a measurement that the page shows elsewhere.
const KNOWN: [&str; 5] = ["operations", "interrupts", "threads", "bound", "ns_per_op"];

/// Who measured in which way: a column.
type Column<'a> = (System, &'a [String], Mode);

/// A table for each workload with further figures; nothing if none has any.
pub(super) fn tables(document: &Document, cases: &[Case<'_>]) -> Option<Markup> {
    let tables: Vec<_> = by_workload(cases)
        .into_iter()
        .filter_map(|(workload, cases)| Some((workload, table(workload, cases)?)))
        .collect();
    (!tables.is_empty()).then(|| {
        html! {
            @for (workload, table) in tables {
                h4 { (workload) }
                (meanings(document, workload))
                (table)
            }
        }
    })
}

fn meanings(document: &Document, workload: &str) -> Markup {
    let described = document.workloads.iter().find(|description| description.name == workload);
    let meanings: Vec<_> =
        described.map(|description| description.figures.iter().collect()).unwrap_or_default();
    html! {
        @if !meanings.is_empty() {
            dl.meanings { @for (name, meaning) in meanings { div { dt { code { (name) } } dd { (meaning) } } } }
        }
    }
}

fn table(workload: &str, cases: &[Case<'_>]) -> Option<Markup> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for record in cases.iter().flat_map(Case::records).filter(|record| names(record).next().is_some()) {
        if !columns.contains(&column(record)) {
            columns.push(column(record));
        }
    }
    columns.sort();
    (!columns.is_empty()).then(|| {
        html! {
            div.wide tabindex="0" role="region" aria-label={ "Further figures of " (workload) } {
                table.bench {
                    thead { tr {
                        th scope="col" { "case" }
                        th.number scope="col" { "CPUs" }
                        th scope="col" { "figure" }
                        @for (system, without, mode) in &columns {
                            th.number scope="col" {
                                (system) @if !without.is_empty() { ", " (off(without)) } ", " (mode.name())
                            }
                        }
                    } }
                    tbody { @for case in cases { (rows(case, &columns)) } }
                }
            }
        }
    })
}

fn rows(case: &Case<'_>, columns: &[Column<'_>]) -> Markup {
    let mut figures: Vec<&str> = case.records().flat_map(names).collect();
    figures.sort_unstable();
    figures.dedup();
    html! {
        @for figure in figures {
            tr {
                th scope="row" { (case.name()) }
                td.number { (case.cpus) }
                td.name { (figure) }
                @for wanted in columns {
                    @let record = case.records().find(|record| column(record) == *wanted);
                    td.number {
                        @match record.and_then(|record| record.figures.get(figure)) {
                            Some(value) => (number::figure(*value)),
                            None => span.weak { "–" },
                        }
                    }
                }
            }
        }
    }
}

fn column(record: &Record) -> Column<'_> {
    (record.system, &record.without, record.mode)
}

fn names(record: &Record) -> impl Iterator<Item = &str> {
    record.figures.keys().map(String::as_str).filter(|name| !KNOWN.contains(name))
}
