//! Every run as it was, folded away.

use maud::{Markup, html};

use crate::number;
use crate::result::{Document, Run};

/// The list of all runs; nothing when the file has none.
pub(super) fn list(document: &Document) -> Option<Markup> {
    (!document.runs.is_empty()).then(|| {
        html! {
            details.runs {
                summary { "All " (number::whole(document.runs.len() as u64)) " runs" }
                div.wide tabindex="0" role="region" aria-label="All runs" {
                    table {
                        thead { tr {
                            @for name in ["run", "pair", "kernel", "without", "mode", "seed", "CPUs", "memory", "board", "wall time", "load", "command"] {
                                th scope="col" { (name) }
                            }
                        } }
                        tbody { @for run in &document.runs { (row(run)) } }
                    }
                }
            }
        }
    })
}

fn row(run: &Run) -> Markup {
    html! {
        tr {
            th scope="row" { (run.id) }
            td { @if let Some(pair) = run.pair { (pair) } }
            td { (run.system) }
            td { (run.without.join(", ")) }
            td { (run.mode.name()) }
            td { @if let Some(seed) = run.seed { (seed) } }
            td { (run.cpus) }
            td { (number::bytes(run.memory_mebibytes << 20)) }
            td { (run.board) }
            td { (number::time(run.wall_seconds * 1e9)) }
            td { @if let Some(load) = run.load { (format!("{load:.2}")) } }
            td.command { code { (run.command.join(" ")) } }
        }
    }
}
