//! What the sources that the workloads come from promise, and what was measured of it, in a sentence for each.

use super::table::mechanisms;
use crate::number;
use crate::result::case::{Case, Count};
use crate::result::{Document, Mode, Record, System};

/// Source, and its promise.
const PROMISES: [(&str, &str); 5] = [
    ("S0", "reclaim gathers the CPUs to tell, and tells each once for many pages"),
    ("S1", "a CPU that only borrows an address space is left alone, and catches up by itself"),
    ("S2", "a barrier interrupts the threads that run, and no others"),
    ("S3", "giving a right interrupts nobody and takes no longer for more threads"),
    ("S4", "moving pages takes fewer interrupts"),
];

/// A source's promise beside what was measured of it.
pub(crate) struct Promise {
    pub(crate) source: &'static str,
    pub(crate) promise: &'static str,
    /// At least one sentence.
    pub(crate) measured: Vec<String>,
}

/// The sentences; none when no source has a workload that was measured.
pub(super) fn render(document: &Document, cases: &[Case<'_>]) -> Option<String> {
    let lines: Vec<_> = promises(document, cases)
        .iter()
        .map(|one| format!("  {}: {}.\n      {}", one.source, one.promise, one.measured.join("\n      ")))
        .collect();
    (!lines.is_empty()).then(|| format!("WHAT THE SOURCES PROMISE\n{}", lines.join("\n")))
}

/// The sources of which a workload was measured.
pub(crate) fn promises(document: &Document, cases: &[Case<'_>]) -> Vec<Promise> {
    PROMISES.iter().filter_map(|(source, promise)| of_source(document, cases, source, promise)).collect()
}

fn of_source(
    document: &Document,
    cases: &[Case<'_>],
    source: &'static str,
    promise: &'static str,
) -> Option<Promise> {
    let workloads = document.workloads.iter().filter(|workload| workload.source.as_deref() == Some(source));
    let mut measured: Vec<String> =
        workloads.filter_map(|workload| interrupts(cases, &workload.name)).collect();
    if source == "S3" {
        measured.extend(promotions(document));
    }
    if source == "S4" {
        measured.extend(all_sizes(cases));
    }
    (!measured.is_empty()).then_some(Promise { source, promise, measured })
}

/// The case that shows the mechanism best: of those that repeat, the one with most interrupts to avoid.
fn interrupts(cases: &[Case<'_>], workload: &str) -> Option<String> {
    let off = |case: &Case<'_>| case.without().first().map(|(_, count)| count.per_operation);
    let most = |case: &Case<'_>| {
        let linux = case.linux().map(|count| count.per_operation);
        [off(case), linux].into_iter().flatten().fold(0.0, f64::max)
    };
    let of_workload =
        cases.iter().filter(|case| case.workload == workload && (case.ours().or(case.linux())).is_some());
    let exact_first = |one: &&Case<'_>, other: &&Case<'_>| {
        one.is_exact().cmp(&other.is_exact()).then(most(one).total_cmp(&most(other)))
    };
    let case = of_workload.max_by(exact_first)?;
    let per_operation = |count: Count| number::count(count.per_operation);
    let ours = case.ours().map(|count| format!("{} interrupts per operation", per_operation(count)));
    let off = case.without();
    let others = off
        .first()
        .map(|(names, count)| format!("{} without {}", per_operation(*count), mechanisms(names)))
        .into_iter()
        .chain(case.linux().map(|count| format!("{} on Linux", per_operation(count))));
    let others: Vec<_> = others.collect();
    let bound = case.bound().map(|bound| format!("{} at least", number::count(bound)));
    let parts: Vec<_> =
        [ours, (!others.is_empty()).then(|| others.join(", ")), bound].into_iter().flatten().collect();
    Some(format!("{}: {}", case.full_name(), parts.join("; ")))
}

/// What moves of all sizes together cost beside other threads, and when each step is flushed by itself.
fn all_sizes(cases: &[Case<'_>]) -> Option<String> {
    let counts: Vec<_> = cases
        .iter()
        .filter(|case| case.workload == "mremap-move" && case.is_exact())
        .filter_map(|case| Some((case.ours()?.per_operation, case.without().first()?.1.per_operation)))
        .collect();
    let ours: f64 = counts.iter().map(|(ours, _)| ours).sum();
    let stepwise: f64 = counts.iter().map(|(_, stepwise)| stepwise).sum();
    (stepwise > 0.0).then(|| {
        format!(
            "one move of each size, beside each number of threads: {} interrupts, {} when each page table is flushed by itself: {:.0} % fewer \
             (the source: 31 %)",
            number::count(ours),
            number::count(stepwise),
            100.0 * (1.0 - ours / stepwise)
        )
    })
}

/// How the promoting call's time grows from one thread to the most, on both kernels.
fn promotions(document: &Document) -> Option<String> {
    let growth = |system: System| {
        let ticks = |record: &&Record| record.figures.contains_key("promote_ticks");
        let of_system = document.records.iter().filter(ticks).filter(|record| {
            record.system == system && record.without.is_empty() && record.mode == Mode::Single
        });
        let records: Vec<_> = of_system.filter(|record| record.threads.is_some()).collect();
        let most = records.iter().max_by_key(|record| (record.threads, record.cpus))?;
        let one = records.iter().find(|record| record.cpus == most.cpus && record.threads == Some(1))?;
        let (one_time, most_time) = (one.figures["promote_ticks"], most.figures["promote_ticks"]);
        (most.threads > Some(1) && one_time > 0.0).then(|| (most.threads.unwrap_or(0), most_time / one_time))
    };
    let (threads, ours) = growth(System::Ceasefire)?;
    let linux = growth(System::Linux).map(|(_, linux)| format!(", on Linux {}", number::ratio(linux)));
    Some(format!(
        "promoting a page that {threads} threads touch takes {} the time that it takes with one{}",
        number::ratio(ours),
        linux.unwrap_or_default()
    ))
}
