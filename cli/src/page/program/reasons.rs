//! Interrupts, flushes and what was avoided, by reason: the rows of the kernels' reports that are not zero, with their meanings.

use maud::{Markup, html};

use super::{Program, Side};
use crate::result::System;
use crate::{linux, number, tables};

/// A group of a report's rows, and what it is called here.
type Kind = (&'static str, &'static str);

const OURS: [Kind; 5] = [
    ("sent", "interrupts sent, by operation"),
    ("received", "interrupts received, by what they met"),
    ("handled", "what the CPUs did about them"),
    ("executed", "invalidations"),
    ("skipped", "interrupts and flushes avoided"),
];
const LINUX: [Kind; 1] = [("linux", "interrupts received, by row of /proc/interrupts")];
const TRACED: [Kind; 2] = [
    ("linux.cause", "flushes by call, in a run that was traced"),
    ("linux.flush", "flushes by reason, in a run that was traced"),
];

pub(super) fn render(program: &Program<'_>) -> Markup {
    let kinds = |side: &Side<'_>| match side.system {
        System::Ceasefire => &OURS[..],
        System::Linux => &LINUX[..],
    };
    html! {
        div.reasons {
            @for side in &program.sides {
                div {
                    h4 { (side.name()) }
                    (tables_of(side, kinds(side)))
                    @if let (System::Linux, Some(traced)) = (side.system, &program.traced) { (tables_of(traced, &TRACED)) }
                }
            }
        }
    }
}

fn tables_of(side: &Side<'_>, kinds: &[Kind]) -> Markup {
    html! {
        @for (group, title) in kinds {
            @let rows = rows(side, group);
            @if !rows.is_empty() {
                table.reasons {
                    thead { tr { th scope="col" { (title) } th.number scope="col" { "times" } } }
                    tbody {
                        @for (name, count) in rows {
                            tr {
                                th scope="row" { (name) span.meaning { (meaning(group, name)) } }
                                td.number { (number::figure(count)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn rows<'b>(side: &'b Side<'_>, group: &'b str) -> Vec<(&'b str, f64)> {
    let mut names: Vec<&str> = Vec::new();
    for row in side.runs.iter().flat_map(|(_, report)| report.group(group)) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let counted = names.into_iter().map(|name| (name, side.median(|report| report.total(group, name))));
    counted.filter(|(_, count)| *count > 0.0).collect()
}

/// What a row counts, if this version knows it.
fn meaning(group: &str, name: &str) -> &'static str {
    match tables::explanation(group, name) {
        "" => linux::meaning(group, name),
        ours => ours,
    }
}
