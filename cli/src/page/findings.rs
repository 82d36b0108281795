//! What came out, in a few sentences that are computed from the cases; where ours is worse than Linux stands by name.

use maud::{Markup, html};

use super::Shown;
use crate::bench;
use crate::number;
use crate::result::System;
use crate::result::case::{Case, Verdict, cpus};

/// The sentences about counts and times; nothing where nothing was measured.
pub(super) fn render(result: &Shown<'_>) -> Option<Markup> {
    let cases = &result.cases;
    if cases.is_empty() {
        return None;
    }
    let counts: Vec<_> = cases.iter().filter_map(|case| Some((case, case.counts()?))).collect();
    let times: Vec<_> = cases.iter().filter_map(|case| Some((case, case.ratio()?.verdict()))).collect();
    let worse_counts = worse(&counts, |case| {
        let (ours, linux) = (case.ours()?.per_operation, case.linux()?.per_operation);
        Some(format!("{} instead of {}", number::short(ours), number::short(linux)))
    });
    let worse_times = worse(&times, |case| Some(number::ratio(case.ratio()?.spread.median)));
    let lists = [
        ("More interrupts per operation than Linux", worse_counts),
        ("More instructions per operation than Linux", worse_instructions(cases)),
        ("More time per operation than Linux, in every pair of runs", worse_times),
    ];
    Some(html! {
        div.findings {
            (tile("Interrupts beside Linux", &counts, ["fewer", "as many", "more"]))
            (tile("Time beside Linux", &times, ["less", "no clear difference", "more"]))
            (bound(cases))
        }
        @for (title, list) in lists {
            @if !list.is_empty() {
                div.notice.worse role="note" {
                    p { strong { (title) } }
                    ul { @for (name, figures) in list { li { strong { (name) } ": " (figures) } } }
                }
            }
        }
        (promises(result))
    })
}

/// What the sources of the workloads promise, and what was measured of it.
fn promises(result: &Shown<'_>) -> Markup {
    let promises = bench::promises(result.document, &result.cases);
    html! {
        @if !promises.is_empty() {
            h3 { "What the sources promise, and what was measured" }
            dl.promises {
                @for one in &promises {
                    dt { (one.source) ": " span.promise { (one.promise) } }
                    @for sentence in &one.measured { dd { (sentence) } }
                }
            }
        }
    }
}

/// Instructions repeat exactly, so any more of them count.
fn worse_instructions(cases: &[Case<'_>]) -> Vec<(String, String)> {
    let counted = cases.iter().filter_map(|case| {
        let (ours, linux) = (case.instructions()?, case.instructions_of(System::Linux, &[])?);
        Some((case, if ours > linux { Verdict::Worse } else { Verdict::Better }))
    });
    worse(&counted.collect::<Vec<_>>(), |case| {
        Some(number::ratio(case.instructions()? / case.instructions_of(System::Linux, &[])?))
    })
}

type Judged<'b, 'a> = (&'b Case<'a>, Verdict);

/// The cases that are worse: the name of each, and its figures at the CPU counts concerned.
fn worse(judged: &[Judged<'_, '_>], figures: impl Fn(&Case<'_>) -> Option<String>) -> Vec<(String, String)> {
    let mut list: Vec<(String, Vec<String>)> = Vec::new();
    for (case, _) in judged.iter().filter(|(_, verdict)| *verdict == Verdict::Worse) {
        let name = format!("{} {}", case.workload, case.name()).trim_end().to_owned();
        let Some(figures) = figures(case) else { continue };
        let at = format!("{figures} on {}", cpus(case.cpus));
        match list.last_mut().filter(|(last, _)| *last == name) {
            Some((_, all)) => all.push(at),
            None => list.push((name, vec![at])),
        }
    }
    list.into_iter().map(|(name, all)| (name, all.join(", "))).collect()
}

/// How many cases were better, the same and worse, as words and as a bar of three parts.
fn tile(title: &str, judged: &[Judged<'_, '_>], words: [&str; 3]) -> Markup {
    let kinds = [Verdict::Better, Verdict::Same, Verdict::Worse];
    let counted = kinds.map(|kind| judged.iter().filter(|(_, verdict)| *verdict == kind).count());
    html! {
        div.tile {
            h3 { (title) }
            @if judged.is_empty() {
                p.weak { "Nothing was measured on both kernels." }
            } @else {
                dl {
                    @for ((word, count), class) in words.iter().zip(counted).zip(["better", "same", "worse"]) {
                        div class=(class) { dd { (count) } dt { (word) } }
                    }
                }
                p.weak { "of " (judged.len()) @if judged.len() == 1 { " case" } @else { " cases" } " measured on both" }
            }
        }
    }
}

fn bound(cases: &[Case<'_>]) -> Markup {
    let bounded: Vec<_> =
        cases.iter().filter(|case| case.bound().is_some() && case.ours().is_some()).collect();
    let at = bounded.iter().filter(|case| case.is_at_the_bound()).count();
    html! {
        @if !bounded.is_empty() {
            div.tile {
                h3 { "Beside the lower bound" }
                dl {
                    div.better { dd { (at) } dt { "at the bound" } }
                    div.same { dd { (bounded.len() - at) } dt { "above it" } }
                }
                p.weak { "of " (bounded.len()) " cases with a bound, counted on Ceasefire" }
            }
        }
    }
}
