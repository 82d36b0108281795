//! What must not be overlooked below the tables: where ours is worse than Linux, what failed, what was not measured, and why.

use crate::number;
use crate::result::case::{Case, Verdict};
use crate::result::{Document, System};

/// Where ours is worse than Linux, by name; that it nowhere is, if so.
pub(super) fn worse(cases: &[Case<'_>]) -> String {
    let name = |case: &Case<'_>| format!("  {}", case.full_name());
    let counted: Vec<_> = cases.iter().filter_map(|case| Some((case, case.counts()?))).collect();
    let timed: Vec<_> = cases.iter().filter_map(|case| Some((case, case.ratio()?))).collect();
    if counted.is_empty() && timed.is_empty() {
        return "Nothing could be compared with Linux.".into();
    }
    let mut lines: Vec<String> = Vec::new();
    for (case, _) in counted.iter().filter(|(_, verdict)| *verdict == Verdict::Worse) {
        let counts = case.ours().zip(case.linux());
        lines.extend(counts.map(|(ours, linux)| {
            let (ours, linux) = (number::count(ours.per_operation), number::count(linux.per_operation));
            format!("{}: {ours} interrupts per operation instead of {linux}", name(case))
        }));
    }
    for case in cases {
        let counts = case.instructions().zip(case.instructions_of(System::Linux, &[]));
        lines.extend(counts.filter(|(ours, linux)| ours > linux).map(|(ours, linux)| {
            format!("{}: {} the instructions per operation", name(case), number::ratio(ours / linux))
        }));
    }
    for (case, ratio) in timed.iter().filter(|(_, ratio)| ratio.verdict() == Verdict::Worse) {
        lines.push(format!("{}: {} the time per operation", name(case), number::ratio(ratio.spread.median)));
    }
    let of = format!("{} cases counted and {} timed on both", counted.len(), timed.len());
    if lines.is_empty() {
        return format!("Nowhere worse than Linux ({of}).");
    }
    format!("WORSE THAN LINUX ({of}):\n{}", lines.join("\n"))
}

/// What was not measured, and why.
pub(super) fn absences(document: &Document) -> Option<String> {
    let list = |failed: bool| -> Vec<String> {
        let chosen = document.absent.iter().filter(|absent| absent.failed == failed);
        chosen.map(|absent| format!("  {}: {}", absent.subject(), absent.reason)).collect()
    };
    let titled = |title: &str, lines: Vec<String>| {
        (!lines.is_empty()).then(|| format!("{title}:\n{}", lines.join("\n")))
    };
    let parts = [titled("FAILED", list(true)), titled("Not measured", list(false))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

pub(super) fn notes(document: &Document) -> Option<String> {
    let incomplete = document.incomplete.as_ref().map(|why| format!("INCOMPLETE: {why}"));
    let notes: Vec<_> = incomplete.into_iter().chain(document.notes.iter().cloned()).collect();
    (!notes.is_empty()).then(|| notes.join("\n"))
}
