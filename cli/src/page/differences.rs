//! Several results beside each other: what differs between them.
//!
//! Every figure of the first result is the one that the others are compared with.

use maud::{Markup, html};

use super::Shown;
use crate::number;
use crate::result::case::{Case, Verdict, off};

/// A figure that several results may have.
struct Row {
    what: String,
    side: String,
    values: Vec<Option<f64>>,
}

/// Counts that differ between the results; folded away those that do not, and those that not all of the results have.
pub(super) fn counts(results: &[Shown<'_>]) -> Markup {
    let (shared, partial): (Vec<_>, Vec<_>) =
        rows(results).into_iter().partition(|row| row.values.iter().all(Option::is_some));
    let (changed, same): (Vec<_>, Vec<_>) = shared.into_iter().partition(Row::differs);
    html! {
        p {
            @if changed.is_empty() && same.is_empty() {
                "No count stands in all of the files."
            } @else if changed.is_empty() {
                "All " (same.len()) " counts that stand in all of the files are the same within 2 %."
            } @else {
                (changed.len()) " of the " (changed.len() + same.len()) " counts that stand in all of the files differ by more than 2 %. "
                "Percentages are the change from " strong { (results[0].name) } "."
            }
        }
        @if !changed.is_empty() { (table(results, &changed, &number::count)) }
        @for (title, rows) in [("that are the same", same), ("that not all of the files have", partial)] {
            @if !rows.is_empty() {
                details.data {
                    summary { "The " (rows.len()) " counts " (title) }
                    (table(results, &rows, &number::count))
                }
            }
        }
    }
}

/// The ratios of times, which are compared as they are: each came from its own machine and load.
pub(super) fn ratios(results: &[Shown<'_>]) -> Option<Markup> {
    let rows: Vec<_> = keys(results)
        .into_iter()
        .map(|key| Row {
            what: key.full_name(),
            side: "Ceasefire ÷ Linux".into(),
            values: results
                .iter()
                .map(|result| Some(same_case(result, key)?.ratio()?.spread.median))
                .collect(),
        })
        .filter(|row| row.values.iter().any(Option::is_some))
        .collect();
    (!rows.is_empty()).then(|| table(results, &rows, &number::ratio))
}

impl Row {
    /// Of values that are all there: whether one is not the first.
    fn differs(&self) -> bool {
        let mut values = self.values.iter().flatten();
        let Some(first) = values.next() else { return false };
        values.any(|value| Verdict::of_counts(*value, *first) != Verdict::Same)
    }
}

/// One case of each name, in the order in which they come.
fn keys<'b, 'a>(results: &'b [Shown<'a>]) -> Vec<&'b Case<'a>> {
    let mut keys: Vec<&Case<'_>> = Vec::new();
    for case in results.iter().flat_map(|result| &result.cases) {
        if !keys.iter().any(|key| is_same(key, case)) {
            keys.push(case);
        }
    }
    keys
}

fn is_same(one: &Case<'_>, other: &Case<'_>) -> bool {
    (one.workload, one.case, one.cpus) == (other.workload, other.case, other.cpus)
}

fn same_case<'b, 'a>(result: &'b Shown<'a>, key: &Case<'_>) -> Option<&'b Case<'a>> {
    result.cases.iter().find(|case| is_same(case, key))
}

fn rows(results: &[Shown<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for key in keys(results) {
        let mut variants: Vec<&[String]> = Vec::new();
        for case in results.iter().filter_map(|result| same_case(result, key)) {
            variants.extend(case.without().into_iter().map(|(names, _)| names));
        }
        variants.sort();
        variants.dedup();
        let mut add = |side: String, value: &dyn Fn(&Case<'_>) -> Option<f64>| {
            let values: Vec<_> = results.iter().map(|result| value(same_case(result, key)?)).collect();
            if values.iter().any(Option::is_some) {
                rows.push(Row { what: key.full_name(), side, values });
            }
        };
        add("Ceasefire".into(), &|case| Some(case.ours()?.per_operation));
        for names in variants {
            add(format!("Ceasefire, {}", off(names)), &|case| {
                Some(case.without().into_iter().find(|(other, _)| *other == names)?.1.per_operation)
            });
        }
        add("Linux".into(), &|case| Some(case.linux()?.per_operation));
    }
    rows
}

fn table(results: &[Shown<'_>], rows: &[Row], shown: &dyn Fn(f64) -> String) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Results beside each other" {
            table.bench {
                thead { tr {
                    th scope="col" { "case" }
                    th scope="col" { "kernel" }
                    @for (index, result) in results.iter().enumerate() {
                        th.number scope="col" { (result.name) }
                        @if index > 0 { th.number scope="col" { "change" } }
                    }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.what) }
                            td { (row.side) }
                            @for (index, value) in row.values.iter().enumerate() {
                                td.number {
                                    @match value { Some(value) => (shown(*value)), None => span.weak { "–" } }
                                }
                                @if index > 0 { td.number { (change(row.values[0], *value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn change(from: Option<f64>, to: Option<f64>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => number::change(from, to),
        (None, Some(_)) => "only here".into(),
        (Some(_), None) => "not here".into(),
        (None, None) => String::new(),
    }
}
