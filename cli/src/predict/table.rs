//! Predictions as text for the terminal: interrupts and times apart, a column for each policy.

use super::document::{Document, Record, Series};
use crate::number;
use crate::tables;

/// Everything that is said of a document.
pub(super) fn render(document: &Document) -> String {
    let sections = [
        figures(document, "INTERRUPTS PER OPERATION, predicted.", |record| {
            number::count(record.interrupts_per_operation)
        }),
        figures(
            document,
            "TIME PER OPERATION, predicted: from the end of one operation of a thread to the end of its next.",
            |record| number::time(record.nanoseconds_per_operation),
        ),
        notes(document),
    ];
    sections.join("\n\n") + "\n"
}

fn figures(document: &Document, title: &str, figure: fn(&Record) -> String) -> String {
    let names = document.policies.iter().map(heading);
    let header: Vec<String> = ["workload".to_owned(), "CPUs".to_owned()].into_iter().chain(names).collect();
    let words: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = tables::plain(&words);
    tables::align_right(&mut table, &(1..header.len()).collect::<Vec<_>>());
    for series in document.series() {
        table.add_row([name(&series)]);
        for cpus in series.cpus() {
            let cells = document
                .policies
                .iter()
                .map(|policy| series.at(cpus, &policy.name).map_or_else(|| "-".to_owned(), figure));
            table.add_row([String::new(), cpus.to_string()].into_iter().chain(cells));
        }
    }
    format!("{title}\n\n{}", tables::lines(&table))
}

/// A policy's name, with what is wrong with it.
pub(super) fn heading(policy: &super::document::System) -> String {
    if policy.mark.is_empty() { policy.name.clone() } else { format!("{} ({})", policy.name, policy.mark) }
}

/// "workload case".
pub(super) fn name(series: &Series<'_>) -> String {
    format!("{} {}", series.workload, series.family).trim_end().to_owned()
}

/// What everybody must know who reads the figures.
fn notes(document: &Document) -> String {
    let mut notes = vec![format!(
        "All figures are a model's, on {} CPUs, seed {}: nobody has measured them. './ceasefire check --part calibration' holds the model against what \
         others have measured.",
        document.machine, document.seed
    )];
    notes.extend(
        document
            .policies
            .iter()
            .filter(|policy| !policy.mark.is_empty())
            .map(|policy| format!("{}: {}", heading(policy), policy.meaning)),
    );
    let chosen: Vec<String> = document
        .parameters
        .iter()
        .filter(|parameter| parameter.basis == "chosen")
        .map(|parameter| format!("{} = {}", parameter.name, parameter.value))
        .collect();
    if !chosen.is_empty() {
        notes.push(format!("Other than usual: {}.", chosen.join(", ")));
    }
    notes.join("\n")
}
