//! `docs/results/predictions.md`.

use super::calibration::{calibrate, claims_markdown};
use super::document::{Document, Record};
use super::table::{heading, name};
use crate::number;

/// All of it.
pub(super) fn render(document: &Document) -> String {
    let calibration = calibrate();
    let policies: String = document
        .policies
        .iter()
        .map(|policy| format!("| `{}` | {} | {} |\n", policy.name, policy.meaning, policy.mark))
        .collect();
    format!(
        "# Predictions\n\n\
         Written by `./ceasefire predict --table docs/results/predictions.md` with the options that the columns show; `docs/guide/predict.md` says how to\n\
         read it. Nothing here was measured, but the column *published*.\n\n\
         ## Held against what others have measured\n\n{}\n## Before they are built\n\n{}\n\
         ## Who is compared\n\n| policy | | |\n|---|---|---|\n{policies}\n\
         ## Interrupts per operation\n\n{}\n## Time per operation\n\n{}\n## What it costs the others: share of all CPUs' time in handlers\n\n{}",
        calibration.markdown(),
        claims_markdown(),
        figures(document, |record| number::count(record.interrupts_per_operation)),
        figures(document, |record| number::time(record.nanoseconds_per_operation)),
        figures(document, |record| format!(
            "{:.1} %",
            record.figures.get("interrupted_share").copied().unwrap_or(0.0) * 100.0
        )),
    )
}

fn figures(document: &Document, figure: fn(&Record) -> String) -> String {
    let names: String = document.policies.iter().map(|policy| format!(" {} |", heading(policy))).collect();
    let mut text =
        format!("| workload | CPUs |{names}\n|---|---|{}\n", "---|".repeat(document.policies.len()));
    for series in document.series() {
        for cpus in series.cpus() {
            let cells = document
                .policies
                .iter()
                .map(|policy| series.at(cpus, &policy.name).map_or_else(|| "–".to_owned(), figure));
            text += &format!("| {} | {cpus} | {} |\n", name(&series), cells.collect::<Vec<_>>().join(" | "));
        }
    }
    text
}
