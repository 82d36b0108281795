//! Interrupts received, by CPU.

use maud::html;
use protocol::report::Row;

use super::{Program, Side};
use crate::number;
use crate::page::chart::bars::{self, Bar, Group};
use crate::page::chart::{Figure, data};
use crate::result::System;

/// CPUs in one chart, so that it fits on a sheet.
const IN_A_CHART: usize = 16;

/// Charts of some CPUs each, all on one scale.
pub(super) fn charts(program: &Program<'_>) -> Vec<Figure> {
    if program.sides.is_empty() {
        return Vec::new();
    }
    let row = |cpu: usize| bars::Row {
        name: format!("CPU {cpu}"),
        bars: program
            .sides
            .iter()
            .map(|side| Bar { mark: side.mark(), name: side.name(), value: received(side, cpu) })
            .collect(),
        bound: None,
    };
    let mut rest: Vec<_> = (0..program.cpus as usize).map(row).collect();
    let most = bars::most(&rest);
    let mut figures = Vec::new();
    while !rest.is_empty() {
        let after = rest.split_off(rest.len().min(IN_A_CHART));
        figures.push(figure(program, std::mem::replace(&mut rest, after), most));
    }
    figures
}

/// Interrupts for coherence that this CPU received; Linux has one row for them.
fn received(side: &Side<'_>, cpu: usize) -> f64 {
    let (group, only) = match side.system {
        System::Ceasefire => ("received", None),
        System::Linux => ("linux", Some("TLB")),
    };
    let counts = |row: &&Row| only.is_none_or(|only| row.name == only);
    let on_it = |row: &Row| row.per_cpu.get(cpu).copied().unwrap_or(0);
    side.median(|report| report.group(group).filter(counts).map(on_it).sum())
}

fn figure(program: &Program<'_>, rows: Vec<bars::Row>, most: f64) -> Figure {
    let names: Vec<_> = program.sides.iter().map(Side::name).collect();
    let header: Vec<_> = std::iter::once("CPU").chain(names.iter().map(String::as_str)).collect();
    let cells = |row: &bars::Row| {
        let values = row.bars.iter().map(|bar| number::figure(bar.value));
        std::iter::once(row.name.clone()).chain(values).collect()
    };
    let table: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let groups = [Group { heading: String::new(), rows }];
    Figure {
        title: html! { "Interrupts received, by CPU" },
        description: format!(
            "Coherence interrupts received by each CPU, for {}. The values are in the table below.",
            names.join(" and ")
        ),
        height: bars::height(&groups),
        drawing: bars::draw(&groups, "interrupts", most),
        data: data(&header, &table),
    }
}
