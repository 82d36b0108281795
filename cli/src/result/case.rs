//! The records of a document, arranged as people ask for them: one case of a workload at one number of CPUs, with what each side
//! measured.
//!
//! Counts and times come from different records. A count is taken from the mode that repeats best: deterministic, else single,
//! else parallel. Where it depends on which thread runs when, and so on the mode, it is taken from single mode, which both sides
//! have: two schedules may not be compared. A time is never taken from deterministic mode, where none passes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::mechanisms;
use crate::result::{Document, Mode, Record, System};
use crate::statistics::Spread;

/// Counts that differ by less are the same: they repeat within this.
const SAME: f64 = 0.02;
/// An interrupt in two hundred operations is noise where none is expected.
const NOISE: f64 = 0.005;
/// Ratios of single pairs within this factor of 1 tell nothing: times repeat no better.
const UNCLEAR: f64 = 1.2;

/// One case of a workload at one number of CPUs.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) workload: &'a str,
    pub(crate) case: Option<&'a str>,
    pub(crate) cpus: u32,
    document: &'a Document,
    records: Vec<&'a Record>,
}

/// A count of one side, and the mode it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Count {
    pub(crate) per_operation: f64,
    pub(crate) mode: Mode,
}

/// Times of ours divided by Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) spread: Spread,
    /// How many pairs of neighbouring runs; none when only the medians could be divided.
    pub(crate) pairs: usize,
}

/// How ours stands beside Linux, less being better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Same,
    Worse,
}

impl Verdict {
    /// Of interrupts for each operation, or of all of a run.
    pub(crate) fn of_counts(count: f64, beside: f64) -> Self {
        let same = (beside.abs() * SAME).max(NOISE);
        match count - beside {
            difference if difference > same => Verdict::Worse,
            difference if difference < -same => Verdict::Better,
            _ => Verdict::Same,
        }
    }

    /// Of the counts of several runs: where those of the sides overlap, neither has more.
    pub(crate) fn of_runs(counts: Spread, beside: Spread) -> Self {
        let overlap = counts.most >= beside.least && counts.least <= beside.most;
        if overlap { Verdict::Same } else { Self::of_counts(counts.median, beside.median) }
    }
}

impl<'a> Case<'a> {
    /// All measured cases of a document: workloads in the order in which it describes them, cases in that of its records, each by
    /// rising CPUs.
    pub(crate) fn all_of(document: &'a Document) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for record in document.records.iter().filter(|record| is_measured(record)) {
            let same = |case: &&mut Case<'_>| {
                case.workload == record.workload
                    && case.case == record.case.as_deref()
                    && case.cpus == record.cpus
            };
            match cases.iter_mut().find(same) {
                Some(case) => case.records.push(record),
                None => cases.push(Case {
                    workload: &record.workload,
                    case: record.case.as_deref(),
                    cpus: record.cpus,
                    document,
                    records: vec![record],
                }),
            }
        }
        let described = document.workloads.iter().map(|description| (description.name.as_str(), None));
        let mut order: Vec<_> = described.collect();
        for case in &cases {
            for key in [(case.workload, None), (case.workload, Some(case.case))] {
                if !order.contains(&key) {
                    order.push(key);
                }
            }
        }
        let place = |key: (&'a str, Option<Option<&'a str>>)| order.iter().position(|other| *other == key);
        cases.sort_by_key(|case| {
            (place((case.workload, None)), place((case.workload, Some(case.case))), case.cpus)
        });
        cases
    }

    /// The case's name, which a workload with one case does not have.
    pub(crate) fn name(&self) -> &'a str {
        self.case.unwrap_or("")
    }

    /// "workload case on 4 CPUs".
    pub(crate) fn full_name(&self) -> String {
        let case = self.case.map(|name| format!(" {name}")).unwrap_or_default();
        format!("{}{case} on {}", self.workload, cpus(self.cpus))
    }

    /// All that was measured of it.
    pub(crate) fn records(&self) -> impl Iterator<Item = &'a Record> {
        self.records.iter().copied()
    }

    fn of<'b>(&'b self, system: System, without: &'b [String]) -> impl Iterator<Item = &'a Record> + 'b {
        let records = self.records.iter().copied();
        records.filter(move |record| record.system == system && record.without == without)
    }

    /// Interrupts for each operation on that side, with these mechanisms off.
    fn count_of(&self, system: System, without: &[String]) -> Option<Count> {
        let mut found: Vec<_> = self
            .of(system, without)
            .filter_map(|record| {
                let per_operation = record.interrupts_per_operation?;
                Some(Count { per_operation, mode: record.mode })
            })
            .collect();
        let exact = self.is_exact();
        found.sort_by_key(|count| (!exact && count.mode != Mode::Single, count.mode));
        found.first().copied()
    }

    /// Whether its counts do not depend on which thread runs when. Workloads that nobody described are taken at their word.
    pub(crate) fn is_exact(&self) -> bool {
        let described = self.document.workloads.iter().find(|described| described.name == self.workload);
        described.is_none_or(|described| described.is_exact(self.case))
    }

    /// Ours with all mechanisms on.
    pub(crate) fn ours(&self) -> Option<Count> {
        self.count_of(System::Ceasefire, &[])
    }

    pub(crate) fn linux(&self) -> Option<Count> {
        self.count_of(System::Linux, &[])
    }

    /// Which mechanisms were off, in each way in which some were.
    pub(crate) fn variants(&self) -> Vec<&'a [String]> {
        let mut variants: Vec<&'a [String]> = Vec::new();
        for record in &self.records {
            if !record.without.is_empty() && !variants.contains(&record.without.as_slice()) {
                variants.push(&record.without);
            }
        }
        variants
    }

    /// Ours with mechanisms off: which, and the count.
    pub(crate) fn without(&self) -> Vec<(&'a [String], Count)> {
        let counted = self.variants().into_iter();
        counted.filter_map(|off| Some((off, self.count_of(System::Ceasefire, off)?))).collect()
    }

    /// The least that a correct kernel can do with.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.records.iter().find_map(|record| record.bound_per_operation)
    }

    /// Instructions of all CPUs for each operation, on our side.
    pub(crate) fn instructions(&self) -> Option<f64> {
        self.instructions_of(System::Ceasefire, &[])
    }

    /// Instructions of all CPUs for each operation, on that side with these mechanisms off.
    pub(crate) fn instructions_of(&self, system: System, without: &[String]) -> Option<f64> {
        self.of(system, without).find_map(|record| record.instructions_per_operation)
    }

    /// The record whose time counts: single mode before parallel.
    pub(crate) fn timed(&self, system: System) -> Option<&'a Record> {
        self.timed_without(system, &[])
    }

    /// The same with these mechanisms off.
    pub(crate) fn timed_without(&self, system: System, without: &[String]) -> Option<&'a Record> {
        let mut timed: Vec<_> = self
            .of(system, without)
            .filter(|record| record.mode != Mode::Deterministic && record.nanoseconds_per_operation.is_some())
            .collect();
        timed.sort_by_key(|record| record.mode);
        timed.first().copied()
    }

    /// Our interrupts beside Linux's; none if they depend on the schedule and come from two kinds of it.
    pub(crate) fn counts(&self) -> Option<Verdict> {
        let (ours, linux) = (self.ours()?, self.linux()?);
        if !self.is_exact() && ours.mode != linux.mode {
            return None;
        }
        Some(Verdict::of_counts(ours.per_operation, linux.per_operation))
    }

    /// Whether ours needs no more interrupts than any correct kernel must.
    pub(crate) fn is_at_the_bound(&self) -> bool {
        let counted = self.ours().zip(self.bound());
        counted.is_some_and(|(ours, bound)| Verdict::of_counts(ours.per_operation, bound) != Verdict::Worse)
    }

    /// Our time divided by Linux's, pair by pair.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        let (ours, linux) = (self.timed(System::Ceasefire)?, self.timed(System::Linux)?);
        if ours.mode != linux.mode {
            return None;
        }
        let (by_pair, linux_by_pair) = (self.times_by_pair(ours), self.times_by_pair(linux));
        let pairs: Vec<_> =
            by_pair.iter().filter_map(|(pair, time)| Some((*time, *linux_by_pair.get(pair)?))).collect();
        if let Some(spread) = Spread::of_ratios(pairs.iter().copied()).filter(is_drawable) {
            return Some(Ratio { spread, pairs: pairs.len() });
        }
        let (time, linux_time) = (ours.nanoseconds_per_operation?, linux.nanoseconds_per_operation?);
        let [least, most] = ours.nanoseconds_spread.unwrap_or([time; 2]);
        let [linux_least, linux_most] = linux.nanoseconds_spread.unwrap_or([linux_time; 2]);
        let spread =
            Spread { least: least / linux_most, median: time / linux_time, most: most / linux_least };
        is_drawable(&spread).then_some(Ratio { spread, pairs: 0 })
    }

    fn times_by_pair(&self, record: &Record) -> BTreeMap<u32, f64> {
        let pair = |id: u32| self.document.runs.iter().find(|run| run.id == id).and_then(|run| run.pair);
        let samples = record.runs.iter();
        samples.filter_map(|sample| Some((pair(sample.run)?, *sample.figures.get("ns_per_op")?))).collect()
    }
}

/// Whether a ratio has a place on a logarithmic axis.
fn is_drawable(spread: &Spread) -> bool {
    let values = [spread.least, spread.median, spread.most];
    values.into_iter().all(|value| value.is_finite() && value > 0.0)
        && spread.least <= spread.median
        && spread.median <= spread.most
}

impl Ratio {
    /// Clear only when all pairs agree.
    pub(crate) fn verdict(&self) -> Verdict {
        let Spread { least, median, most } = self.spread;
        let alone = least == most && (1.0 / UNCLEAR..=UNCLEAR).contains(&median);
        match self.spread.side_of(1.0) {
            Some(Ordering::Less) if !alone => Verdict::Better,
            Some(Ordering::Greater) if !alone => Verdict::Worse,
            _ => Verdict::Same,
        }
    }
}

/// Whether a record has figures of operations: a run of a program that measures nothing has none.
pub(crate) fn is_measured(record: &Record) -> bool {
    record.interrupts_per_operation.is_some()
        || record.nanoseconds_per_operation.is_some()
        || record.instructions_per_operation.is_some()
}

/// The cases of one workload after the other.
pub(crate) fn by_workload<'b, 'a>(cases: &'b [Case<'a>]) -> Vec<(&'a str, &'b [Case<'a>])> {
    cases
        .chunk_by(|one, next| one.workload == next.workload)
        .map(|chunk| (chunk[0].workload, chunk))
        .collect()
}

/// The mechanisms that were off, as a label.
pub(crate) fn off(without: &[String]) -> String {
    match mechanisms::usual().all(|usual| without.iter().any(|name| name == usual)) {
        true => "all off".into(),
        false => format!("{} off", without.join("+")),
    }
}

/// "1 CPU", "4 CPUs".
pub(crate) fn cpus(count: u32) -> String {
    if count == 1 { "1 CPU".into() } else { format!("{count} CPUs") }
}
