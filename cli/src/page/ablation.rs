//! What the mechanisms change: interrupts for each operation without and with them, as bars.

use maud::{Markup, html};

use super::chart::bars::{self, Bar, Group, Row};
use super::chart::{Figure, Mark, data, sheets};
use super::{Shown, workloads};
use crate::number;
use crate::result::case::{Case, cpus, off};

/// A chart for each workload of which a mechanism was switched off; nothing if there is none.
pub(super) fn charts(results: &[Shown<'_>]) -> Option<Markup> {
    let mut figures = Vec::new();
    for workload in workloads(results) {
        for result in results {
            let cases: Vec<_> = result.cases.iter().filter(|case| case.workload == workload).collect();
            figures.extend(figures_of(result, workload, &cases));
        }
    }
    (!figures.is_empty())
        .then(|| html! { div.charts.packed { @for figure in &figures { (figure.render()) } } })
}

/// One figure, or as many as sheets are needed, all on one scale.
fn figures_of(result: &Shown<'_>, workload: &str, cases: &[&Case<'_>]) -> Vec<Figure> {
    let groups: Vec<_> = cases
        .chunk_by(|one, next| one.case == next.case)
        .map(|cases| Group {
            heading: cases[0].name().to_owned(),
            rows: cases.iter().filter_map(|case| row(case)).collect(),
        })
        .filter(|group| !group.rows.is_empty())
        .collect();
    let most = bars::most(groups.iter().flat_map(|group| &group.rows));
    let sheets = sheets(groups, bars::height);
    sheets.iter().map(|groups| figure(result, workload, groups, most)).collect()
}

fn figure(result: &Shown<'_>, workload: &str, groups: &[Group], most: f64) -> Figure {
    let mut rows = Vec::new();
    for group in groups {
        for row in &group.rows {
            for bar in row.bars.iter().filter(|bar| bar.mark == Mark::Without) {
                let on = row.bars.iter().find(|bar| bar.mark == Mark::Ours).map_or(f64::NAN, |bar| bar.value);
                rows.push(vec![
                    format!("{} {}", group.heading, row.name).trim().to_owned(),
                    bar.name.clone(),
                    number::count(bar.value),
                    number::count(on),
                    number::change(bar.value, on),
                ]);
            }
        }
    }
    Figure {
        title: result.title(workload, ""),
        description: format!(
            "{workload}: interrupts per operation on Ceasefire without and with its mechanisms. The values are in the table below."
        ),
        height: bars::height(groups),
        drawing: bars::draw(groups, "interrupts per operation", most),
        data: data(&["case", "off", "without", "with", "change"], &rows),
    }
}

/// The bars of one case, if it was measured with and without.
fn row(case: &Case<'_>) -> Option<Row> {
    let ours = case.ours()?;
    let mut bars: Vec<_> = case
        .without()
        .into_iter()
        // Another mode is another schedule: what differs would not be the mechanism.
        .filter(|(_, count)| count.mode == ours.mode)
        .map(|(names, count)| Bar { mark: Mark::Without, name: off(names), value: count.per_operation })
        .collect();
    if bars.is_empty() {
        return None;
    }
    bars.push(Bar { mark: Mark::Ours, name: "all on".into(), value: ours.per_operation });
    Some(Row { name: cpus(case.cpus), bars, bound: case.bound() })
}
