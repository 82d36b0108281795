//! The head of a result: what was measured, on which machine, with which versions, and what is missing and why.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::Titled;
use crate::number;
use crate::result::{Absent, Document, Mode, System};

/// What is said of a document in one row.
type Fact = fn(&Document) -> Markup;

/// One column for each result.
pub(super) fn render(results: &[Titled<'_>]) -> Markup {
    let rows: [(&str, Fact); 8] = [
        ("Host", host),
        ("Host's kernel", |document| optional(document.machine.kernel.as_deref())),
        ("Load of the host", load),
        ("Ceasefire", ceasefire),
        ("Linux", linux),
        ("Emulator", |document| optional(document.versions.emulator.as_deref())),
        ("Guests", guests),
        ("Runs", runs),
    ];
    html! {
        div.wide tabindex="0" role="region" aria-label="Machine and versions" {
            table.facts {
                @if results.len() > 1 {
                    thead { tr { td {} @for result in results { th scope="col" { (result.name) } } } }
                }
                tbody {
                    @for (name, fact) in rows {
                        tr { th scope="row" { (name) } @for result in results { td { (fact(result.document)) } } }
                    }
                }
            }
        }
    }
}

/// Why the result is not whole, how it was measured, and what could not be, in plain sight.
pub(super) fn remarks(document: &Document) -> Option<Markup> {
    if document.incomplete.is_none() && document.absent.is_empty() && document.notes.is_empty() {
        return None;
    }
    Some(html! {
        @if let Some(why) = &document.incomplete {
            div.notice.worse role="note" { p { strong { "This result is incomplete: " } (why) } }
        }
        @if !document.absent.is_empty() {
            div.notice role="note" {
                p { strong { "Not measured" } }
                ul { @for absent in &document.absent { li { (absence(absent)) } } }
            }
        }
        @if !document.notes.is_empty() { ul.notes { @for note in &document.notes { li { (note) } } } }
    })
}

/// What is absent and why.
pub(super) fn absence(absent: &Absent) -> Markup {
    html! { strong { (absent.subject()) @if absent.failed { " failed" } } ": " (absent.reason) }
}

fn optional(text: Option<&str>) -> Markup {
    html! { @match text { Some(text) => (text), None => span.weak { "not known" } } }
}

fn host(document: &Document) -> Markup {
    let machine = &document.machine;
    let cores = if machine.cores == 1 { "1 core".into() } else { format!("{} cores", machine.cores) };
    html! {
        (optional(machine.processor.as_deref())) ", " (cores)
        @if let Some(bytes) = machine.memory_bytes { ", " (number::bytes(bytes)) }
    }
}

/// The load before each run says more than the one at the end.
fn load(document: &Document) -> Markup {
    let mut loads: Vec<f64> = document.runs.iter().filter_map(|run| run.load).collect();
    loads.sort_by(f64::total_cmp);
    let cores = document.machine.cores as f64;
    html! {
        @match (loads.first(), loads.last()) {
            (Some(least), Some(most)) => {
                (format!("{least:.2} to {most:.2} runnable processes before the runs"))
                @if *most > cores + 0.5 {
                    ": " strong { "busier than its cores; its times deserve doubt" }
                }
            }
            _ => (optional(document.machine.load.map(|load| format!("{load:.2} runnable processes")).as_deref())),
        }
    }
}

fn ceasefire(document: &Document) -> Markup {
    let versions = &document.versions;
    html! {
        (versions.ceasefire)
        @if let Some(commit) = &versions.commit {
            ", commit " code { (commit.trim_end_matches('+')) }
            @if commit.ends_with('+') { " with changes that are not committed" }
        }
    }
}

fn linux(document: &Document) -> Markup {
    html! {
        @match &document.versions.linux {
            Some(version) => { (version.name) " " span.hash { "sha256 " code { (version.sha256) } } }
            None => span.weak { "no run was made on Linux" },
        }
    }
}

/// The guests that took part: boards, memory, CPUs, modes.
fn guests(document: &Document) -> Markup {
    let distinct = |texts: BTreeSet<String>| texts.into_iter().collect::<Vec<_>>().join(", ");
    let records = &document.records;
    let counts: BTreeSet<u32> = records.iter().map(|record| record.cpus).collect();
    let counts: Vec<_> = counts.into_iter().map(|count| count.to_string()).collect();
    let seeds: BTreeSet<u64> = records.iter().filter_map(|record| record.seed).collect();
    html! {
        @if records.is_empty() { span.weak { "none" } } @else {
            (counts.join(", ")) @if counts == ["1"] { " CPU, " } @else { " CPUs, " }
            (distinct(records.iter().map(|record| number::bytes(record.memory_mebibytes << 20)).collect())) ", "
            (distinct(records.iter().map(|record| record.board.clone()).collect()))
            @if !seeds.is_empty() {
                "; seeds " (distinct(seeds.iter().map(u64::to_string).collect()))
            }
        }
    }
}

/// How many runs of which kind.
fn runs(document: &Document) -> Markup {
    let kinds = [System::Ceasefire, System::Linux]
        .into_iter()
        .flat_map(|system| [Mode::Deterministic, Mode::Single, Mode::Parallel].map(|mode| (system, mode)));
    let counted: Vec<_> = kinds
        .filter_map(|(system, mode)| {
            let of_kind = document.runs.iter().filter(|run| run.system == system && run.mode == mode);
            let count = of_kind.count();
            (count > 0).then(|| format!("{} on {system} ({})", number::whole(count as u64), mode.name()))
        })
        .collect();
    html! { @if counted.is_empty() { span.weak { "not in the file" } } @else { (counted.join(", ")) } }
}
