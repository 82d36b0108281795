//! Runs of a program that measures nothing of itself: what each kernel reports about them, side by side.
//!
//! The reports are the guests' own (`protocol::report`). Where a kernel ran the program several times, each figure is the median.

use maud::{Markup, html};
use protocol::report::{Report, Row};

use super::chart::bars::{self, Bar, Group};
use super::chart::{Figure, Mark, data};
use crate::number;
use crate::result::case::{cpus, off};
use crate::result::{Document, Mode, Run, System};
use crate::statistics::Spread;

/// CPUs in one chart.
const IN_A_CHART: usize = 16;

/// All runs of one program on one kernel in one way.
struct Side<'a> {
    system: System,
    without: &'a [String],
    mode: Mode,
    runs: Vec<&'a Run>,
    reports: Vec<Report>,
}

/// A section for each program in the document; nothing if it has none.
pub(super) fn sections(document: &Document) -> Option<Markup> {
    let mut programs: Vec<(&[String], u32, Vec<&Run>)> = Vec::new();
    for run in document.runs.iter().filter(|run| !is_measured(document, run.id)) {
        match programs.iter_mut().find(|(command, cpus, _)| *command == run.command && *cpus == run.cpus) {
            Some((.., runs)) => runs.push(run),
            None => programs.push((&run.command, run.cpus, vec![run])),
        }
    }
    (!programs.is_empty()).then(|| {
        html! { @for (command, cpus, runs) in &programs { (program(command, *cpus, runs)) } }
    })
}

/// Whether some record has figures of operations from this run.
fn is_measured(document: &Document, id: u32) -> bool {
    document.records.iter().any(|record| {
        crate::result::case::is_measured(record) && record.runs.iter().any(|sample| sample.run == id)
    })
}

fn program(command: &[String], count: u32, runs: &[&Run]) -> Markup {
    let sides = sides(runs);
    html! {
        section.program {
            h3 { code { (command.join(" ")) } " on " (cpus(count)) }
            (wall(&sides))
            h4 { "Coherence interrupts received, by CPU" }
            div.charts { @for figure in by_cpu(&sides) { (figure.render()) } }
            h4 { "By reason" }
            div.reasons { @for side in &sides { (reasons(side)) } }
        }
    }
}

fn sides<'a>(runs: &[&'a Run]) -> Vec<Side<'a>> {
    let mut sides: Vec<Side<'a>> = Vec::new();
    for run in runs {
        let same = |side: &&mut Side<'_>| {
            side.system == run.system && side.without == run.without && side.mode == run.mode
        };
        let report = serde_json::from_value(run.report.clone()).ok();
        match sides.iter_mut().find(same) {
            Some(side) => {
                side.runs.push(run);
                side.reports.extend(report);
            }
            None => sides.push(Side {
                system: run.system,
                without: &run.without,
                mode: run.mode,
                runs: vec![run],
                reports: Vec::from_iter(report),
            }),
        }
    }
    sides
}

impl Side<'_> {
    fn name(&self) -> String {
        match self.without {
            [] => self.system.to_string(),
            names => format!("{}, {}", self.system, off(names)),
        }
    }

    fn mark(&self) -> Mark {
        match (self.system, self.without) {
            (System::Linux, _) => Mark::Linux,
            (System::Ceasefire, []) => Mark::Ours,
            (System::Ceasefire, _) => Mark::Without,
        }
    }

    /// The median over the runs of what a report says.
    fn median(&self, of: impl Fn(&Report) -> u64) -> f64 {
        let values = self.reports.iter().map(|report| of(report) as f64);
        Spread::of(values).map_or(f64::NAN, |spread| spread.median)
    }

    /// Coherence interrupts that this CPU received: Linux has one row for them.
    fn received(&self, cpu: usize) -> f64 {
        let on_it = |row: &Row| row.per_cpu.get(cpu).copied().unwrap_or(0);
        match self.system {
            System::Ceasefire => self.median(|report| report.group("received").map(on_it).sum()),
            System::Linux => {
                let tlb = |row: &&Row| row.name == "TLB";
                self.median(|report| report.group("linux").filter(tlb).map(on_it).sum())
            }
        }
    }
}

/// How long the runs took on the host.
fn wall(sides: &[Side<'_>]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Runs of the program" {
            table.bench {
                thead { tr {
                    th scope="col" { "kernel" }
                    th scope="col" { "mode" }
                    th.number scope="col" { "runs" }
                    th.number scope="col" { "coherence interrupts" }
                    th.number scope="col" { "wall time on the host, with boot" }
                } }
                tbody {
                    @for side in sides {
                        @let wall = Spread::of(side.runs.iter().map(|run| run.wall_seconds * 1e9));
                        @let most = side.runs.iter().map(|run| run.cpus).max().unwrap_or(0) as usize;
                        tr {
                            th scope="row" { (side.name()) }
                            td { (super::head::word(side.mode)) }
                            td.number { (side.runs.len()) }
                            td.number { (number::figure((0..most).map(|cpu| side.received(cpu)).sum())) }
                            td.number {
                                @if let Some(wall) = wall {
                                    (number::time(wall.median))
                                    @if side.runs.len() > 1 {
                                        span.weak { " (" (number::time(wall.least)) " to " (number::time(wall.most)) ")" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Charts of some CPUs each, all on one scale.
fn by_cpu(sides: &[Side<'_>]) -> Vec<Figure> {
    let count = sides.iter().flat_map(|side| &side.runs).map(|run| run.cpus as usize).max().unwrap_or(0);
    let row = |cpu: usize| bars::Row {
        name: format!("CPU {cpu}"),
        bars: sides
            .iter()
            .map(|side| Bar { mark: side.mark(), name: side.name(), value: side.received(cpu) })
            .collect(),
        bound: None,
    };
    let all: Vec<_> = (0..count).map(row).collect();
    let most = bars::most(&all);
    let mut header = vec!["CPU".to_owned()];
    header.extend(sides.iter().map(Side::name));
    let header: Vec<_> = header.iter().map(String::as_str).collect();
    let mut rest = all.into_iter().peekable();
    let mut figures = Vec::new();
    while rest.peek().is_some() {
        let rows: Vec<_> = rest.by_ref().take(IN_A_CHART).collect();
        let cells = |row: &bars::Row| {
            let values = row.bars.iter().map(|bar| number::figure(bar.value));
            std::iter::once(row.name.clone()).chain(values).collect()
        };
        let table: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let groups = [Group { heading: String::new(), rows }];
        figures.push(Figure {
            title: html! { "Interrupts received" },
            description: "Coherence interrupts received by each CPU, for each kernel. The values are in the table below.".into(),
            height: bars::height(&groups),
            drawing: bars::draw(&groups, "interrupts", most),
            data: data(&header, &table),
        });
    }
    figures
}

/// The rows of a kernel's report that are not zero, by group.
fn reasons(side: &Side<'_>) -> Markup {
    const OURS: [(&str, &str); 5] = [
        ("sent", "interrupts sent, by operation"),
        ("received", "interrupts received, by what they met"),
        ("handled", "what the CPUs did about them"),
        ("executed", "invalidations"),
        ("skipped", "interrupts and flushes avoided"),
    ];
    const LINUX: [(&str, &str); 2] =
        [("linux", "interrupts received, by row of /proc/interrupts"), ("linux.flush", "flushes, by reason")];
    let groups: &[(&str, &str)] = if side.system == System::Linux { &LINUX } else { &OURS };
    html! {
        div {
            h5 { (side.name()) }
            @if side.reports.is_empty() { p.weak { "Its reports cannot be read." } }
            @for (group, title) in groups {
                @let rows = rows(side, group);
                @if !rows.is_empty() {
                    table.reasons {
                        thead { tr { th scope="col" { (title) } th.number scope="col" { "times" } } }
                        tbody { @for (name, count) in rows { tr { th scope="row" { (name) } td.number { (number::figure(count)) } } } }
                    }
                }
            }
        }
    }
}

fn rows(side: &Side<'_>, group: &str) -> Vec<(String, f64)> {
    let mut names: Vec<&str> = Vec::new();
    for row in side.reports.iter().flat_map(|report| report.group(group)) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let counted =
        names.into_iter().map(|name| (name.to_owned(), side.median(|report| report.total(group, name))));
    counted.filter(|(_, count)| *count > 0.0).collect()
}
