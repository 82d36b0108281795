//! Everything that was measured for one comparison: what is printed of it, and the document that is saved.

use super::ablation::Ablation;
use super::explanation::Evidence;
use super::prose::{count, wrap};
use super::trial::{Counts, Trial, typical};
use super::{agreement, table, times};
use crate::result::case::Verdict;
use crate::result::{Absent, Document, LinuxVersion, Record, Run, Sample, System};
use crate::tables;

/// Columns of the paragraph.
const WIDTH: usize = 110;

/// What was measured, in whole or in part.
#[derive(Debug)]
pub(super) struct Comparison {
    /// "mprotect-flip on 4 CPUs with 512 MiB".
    pub(super) title: String,
    /// The program's name in results.
    pub(super) program: String,
    pub(super) ours: Vec<Trial>,
    pub(super) linux: Vec<Trial>,
    pub(super) version: Option<LinuxVersion>,
    /// Why Linux has no runs, or no further ones.
    pub(super) absent: Option<String>,
    /// A run on Linux that counted flushes by reason and whose times therefore mean nothing.
    pub(super) traced: Option<Trial>,
    pub(super) ablation: Option<Ablation>,
    /// The sanitizer slowed our side down, so times say nothing.
    pub(super) sanitized: bool,
    /// Sentences on how this was measured.
    pub(super) notes: Vec<String>,
    /// Why it ended before all was measured.
    pub(super) incomplete: Option<String>,
}

impl Comparison {
    /// The runs of both sides that are compared, in the order in which they were made.
    pub(super) fn trials(&self) -> Vec<&Trial> {
        let mut trials: Vec<_> = self.ours.iter().chain(&self.linux).collect();
        trials.sort_by_key(|trial| trial.run.id);
        trials
    }

    /// Tables and text for a person; nothing if our side has no run.
    pub(super) fn render(&self) -> Option<String> {
        let ours = &typical(&self.ours)?.report;
        let linux = typical(&self.linux).map(|trial| &trial.report);
        let traced = self.traced.as_ref().map(|trial| &trial.report);
        let sections = [
            Some(self.head()),
            Some(table::interrupts(&self.ours, &self.linux)),
            table::by_cpu(ours, linux),
            tables::causes(ours, "sent by Ceasefire for"),
            Some(table::flushes(ours, traced)),
            tables::explained(ours, "skipped", "avoided by Ceasefire", "times"),
            Some(times::table(&self.ours, self.timed_linux())),
            self.ablation.as_ref().map(Ablation::table),
        ];
        let mut text: String = sections.iter().flatten().map(|section| format!("\n{section}\n")).collect();
        let standing = table::standing(&self.ours, &self.linux);
        let evidence = Evidence { ours, linux, standing, ablation: self.ablation.as_ref() };
        let calls = tables::unknown_calls(ours);
        for paragraph in [evidence.paragraph() + &calls, self.verdict()] {
            text.push_str(&format!("\n{}\n", wrap(&paragraph, WIDTH)));
        }
        Some(text)
    }

    /// Linux's runs, if their times may stand beside ours.
    fn timed_linux(&self) -> &[Trial] {
        if self.sanitized { &[] } else { &self.linux }
    }

    /// What was compared, how, and whether the program did the same everywhere.
    fn head(&self) -> String {
        let runs = |trials: &[Trial], system: &str| {
            let (number, mode) = (trials.len(), trials.first().map_or("", |trial| trial.run.mode.name()));
            let plural = if number == 1 { "run" } else { "runs" };
            format!("{number} {plural} on {system} ({mode} mode)")
        };
        let mut lines = vec![self.title.clone()];
        lines.push(match &self.linux[..] {
            [] => runs(&self.ours, "Ceasefire"),
            linux => format!("{} and {}, in turn", runs(&self.ours, "Ceasefire"), runs(linux, "Linux")),
        });
        if let Some(version) = &self.version {
            lines.push(format!("Linux is {} (sha256 {:.16})", version.name, version.sha256));
        }
        let mut sentences: Vec<_> =
            self.absent.iter().map(|reason| format!("LINUX IS ABSENT: {reason}.")).collect();
        sentences.extend(self.incomplete.iter().map(|reason| format!("INCOMPLETE: {reason}.")));
        sentences.extend(self.notes.iter().cloned());
        sentences.extend(times::load(&self.trials()));
        sentences.extend(agreement::of(&self.trials()).text.lines().map(str::to_owned));
        // What is indented is an excerpt of somebody's output, whose blanks count.
        let laid_out = |line: &String| if line.starts_with(' ') { line.clone() } else { wrap(line, WIDTH) };
        lines.extend(sentences.iter().map(laid_out));
        lines.join("\n")
    }

    /// The comparison in one line.
    fn verdict(&self) -> String {
        let Some((ours, linux)) = typical(&self.ours).zip(typical(&self.linux)) else {
            return "There is nothing to compare with.".into();
        };
        let [one, other] = [ours, linux].map(|trial| trial.report.interrupts(trial.run.system));
        let worse = match table::standing(&self.ours, &self.linux) {
            Some(Verdict::Worse) => ": WORSE THAN LINUX",
            _ => "",
        };
        let time = times::of_program(&self.ours, self.timed_linux()).map_or_else(
            || "times cannot be compared".to_owned(),
            |ratio| format!("time of Ceasefire to Linux {}", times::in_words(ratio)),
        );
        let interrupts = match (one, other) {
            (0, 0) => "no interrupts on either side".into(),
            (one, other) => format!("{} on Ceasefire, {other} on Linux{worse}", count(one, "interrupt")),
        };
        let calls = [ours, linux].map(|trial| trial.report.other_calls(trial.run.system));
        let barriers = match calls {
            [0, _] => String::new(),
            [one, other] => format!(", for barriers {one} to {other}"),
        };
        format!("In short: {interrupts}{barriers}; {time}.")
    }

    /// The form that is saved.
    pub(super) fn document(&self) -> Document {
        let ablated = self.ablation.iter().flat_map(|ablation| &ablation.cases);
        let ablated: Vec<_> = ablated.filter_map(|case| case.trial.as_ref().ok()).collect();
        let groups = [self.ours.iter().collect(), self.linux.iter().collect::<Vec<_>>()];
        let singles = ablated.iter().map(|trial| vec![*trial]);
        let groups: Vec<Vec<&Trial>> = groups.into_iter().chain(singles).collect();
        let records = groups.iter().filter_map(|trials| self.record(trials)).collect();
        let mut runs: Vec<Run> = groups.iter().flatten().map(|trial| trial.run.clone()).collect();
        runs.extend(self.traced.iter().map(|trial| trial.run.clone()));
        runs.sort_by_key(|run| run.id);
        let mut document = Document::new(records, runs);
        document.versions.linux.clone_from(&self.version);
        document.incomplete.clone_from(&self.incomplete);
        document.notes.clone_from(&self.notes);
        document.absent.extend(self.absent.iter().map(|reason| Absent {
            workload: Some(self.program.clone()),
            case: None,
            system: System::Linux,
            cpus: None,
            reason: reason.clone(),
            failed: self.version.is_some(),
        }));
        document
    }

    fn record(&self, trials: &[&Trial]) -> Option<Record> {
        let mut record = Record::unmeasured(&self.program, &trials.first()?.run);
        let sample =
            |trial: &&Trial| Sample { run: trial.run.id, figures: std::collections::BTreeMap::new() };
        record.runs = trials.iter().map(sample).collect();
        Some(record)
    }
}
