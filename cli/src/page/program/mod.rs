//! Runs of a program that measures nothing of itself: what each kernel reports about them, side by side.
//!
//! The reports are the guests' own (`protocol::report`). Runs that belong to a pair are the comparison; further runs of ours show
//! what its mechanisms do, further runs of Linux were traced and say why it flushed. Where a kernel ran the program several times,
//! each figure is the median.

mod cpus;
mod reasons;
mod summary;

use maud::{Markup, html};
use protocol::report::Report;

use super::chart::Mark;
use crate::result::case::{self, off};
use crate::result::{Document, Mode, Run, System};
use crate::statistics::Spread;

/// All runs of one program on one kernel in one way, with their reports.
struct Side<'a> {
    system: System,
    without: &'a [String],
    mode: Mode,
    runs: Vec<(&'a Run, Report)>,
}

/// Everything about one program on one number of CPUs.
struct Program<'a> {
    command: &'a [String],
    cpus: u32,
    /// What is compared.
    sides: Vec<Side<'a>>,
    /// Ours, with mechanisms off and on.
    ablation: Vec<Side<'a>>,
    /// Linux, traced: its flushes by reason.
    traced: Option<Side<'a>>,
    /// Runs whose reports are of another form.
    unreadable: usize,
}

/// A section for each program in the document; nothing if it has none.
pub(super) fn sections(document: &Document) -> Option<Markup> {
    let mut programs: Vec<Vec<&Run>> = Vec::new();
    for run in document.runs.iter().filter(|run| !is_measured(document, run.id)) {
        let same = |runs: &&mut Vec<&Run>| runs[0].command == run.command && runs[0].cpus == run.cpus;
        match programs.iter_mut().find(same) {
            Some(runs) => runs.push(run),
            None => programs.push(vec![run]),
        }
    }
    let programs: Vec<_> = programs.iter().map(|runs| Program::of(runs)).collect();
    (!programs.is_empty()).then(|| html! { @for program in &programs { (program.render()) } })
}

/// Whether some record has figures of operations from this run.
fn is_measured(document: &Document, id: u32) -> bool {
    let has_it = |record: &&crate::result::Record| record.runs.iter().any(|sample| sample.run == id);
    document.records.iter().filter(has_it).any(case::is_measured)
}

impl<'a> Program<'a> {
    fn of(runs: &[&'a Run]) -> Self {
        let in_pairs = runs.iter().any(|run| run.pair.is_some());
        let mut unreadable = 0;
        let (mut sides, mut further): (Vec<Side<'_>>, Vec<Side<'_>>) = (Vec::new(), Vec::new());
        for run in runs {
            let Ok(report) = serde_json::from_value(run.report.clone()) else {
                unreadable += 1;
                continue;
            };
            let list = if in_pairs && run.pair.is_none() { &mut further } else { &mut sides };
            let same = |side: &&mut Side<'_>| {
                (side.system, side.without, side.mode) == (run.system, &run.without[..], run.mode)
            };
            match list.iter_mut().find(same) {
                Some(side) => side.runs.push((run, report)),
                None => list.push(Side {
                    system: run.system,
                    without: &run.without,
                    mode: run.mode,
                    runs: vec![(run, report)],
                }),
            }
        }
        let (ablation, traced): (Vec<_>, Vec<_>) =
            further.into_iter().partition(|side| side.system == System::Ceasefire);
        Program {
            command: &runs[0].command,
            cpus: runs[0].cpus,
            sides,
            ablation,
            traced: traced.into_iter().next(),
            unreadable,
        }
    }

    fn render(&self) -> Markup {
        html! {
            section.program {
                h3 { code { (self.command.join(" ")) } " on " (case::cpus(self.cpus)) }
                @if self.unreadable > 0 {
                    p { (self.unreadable) " of its runs have a report of another form, which this version cannot read." }
                }
                (summary::render(self))
                @let figures: Vec<_> = cpus::charts(self).into_iter().chain(summary::ablation(self)).collect();
                @if !figures.is_empty() { div.charts.packed { @for figure in &figures { (figure.render()) } } }
                (reasons::render(self))
            }
        }
    }

    fn side(&self, system: System) -> Option<&Side<'a>> {
        self.sides.iter().find(|side| side.system == system)
    }
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

    /// What the reports say, over the runs. There is at least one.
    fn spread(&self, of: impl Fn(&Report) -> u64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|(_, report)| of(report) as f64))
    }

    fn median(&self, of: impl Fn(&Report) -> u64) -> f64 {
        self.spread(of).map_or(0.0, |spread| spread.median)
    }
}
