//! Interrupts and times in all, which kernel had more, and what switching mechanisms off changes.

use std::collections::BTreeMap;

use maud::{Markup, html};
use protocol::report::{ProcessorTime, Report};

use super::{Program, Side};
use crate::compare::Counts;
use crate::number;
use crate::page::chart::bars::{self, Bar, Group, Row};
use crate::page::chart::{Figure, data};
use crate::result::case::{Ratio, Verdict, off};
use crate::result::{Mode, System};
use crate::statistics::Spread;

/// A row for each side, and how they compare.
pub(super) fn render(program: &Program<'_>) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Interrupts and times in all" {
            table.bench {
                thead { tr {
                    th scope="col" { "kernel" }
                    th scope="col" { "mode" }
                    th.number scope="col" { "runs" }
                    th.number scope="col" { "interrupts for translations" }
                    th.number scope="col" { "time of the program" }
                    th.number scope="col" { "processor time" }
                } }
                tbody { @for side in &program.sides { (row(side)) } }
            }
        }
        (verdicts(program))
    }
}

fn row(side: &Side<'_>) -> Markup {
    html! {
        tr {
            th scope="row" { (side.name()) }
            td { (side.mode.name()) }
            td.number { (side.runs.len()) }
            td.number { (with_ends(side.spread(|report| report.interrupts(side.system)), &number::figure)) }
            td.number {
                @if side.mode == Mode::Deterministic {
                    (with_ends(side.spread(elapsed), &number::figure)) " instructions"
                } @else {
                    (with_ends(side.spread(elapsed), &number::time))
                }
            }
            td.number { (processor_time(side)) }
        }
    }
}

/// From the program's first instruction to its end.
fn elapsed(report: &Report) -> u64 {
    report.clock.program_end.saturating_sub(report.clock.program_start)
}

/// In the program and in the kernel, where the reports say.
fn processor_time(side: &Side<'_>) -> Markup {
    let of = |part: fn(&ProcessorTime) -> u64| {
        let times =
            side.runs.iter().filter_map(|(_, report)| Some(part(report.processor_time.as_ref()?) as f64));
        Spread::of(times)
    };
    html! {
        @match of(|time| time.user).zip(of(|time| time.system)) {
            Some((user, system)) if side.mode != Mode::Deterministic => {
                div { span.off { "program " } (with_ends(Some(user), &number::time)) }
                div { span.off { "kernel " } (with_ends(Some(system), &number::time)) }
            }
            _ => span.weak { "–" },
        }
    }
}

fn with_ends(spread: Option<Spread>, shown: &dyn Fn(f64) -> String) -> Markup {
    html! {
        @if let Some(spread) = spread {
            (shown(spread.median))
            @if spread.least != spread.most {
                span.weak { " (" (shown(spread.least)) " to " (shown(spread.most)) ")" }
            }
        }
    }
}

/// Who had more interrupts and who took longer, in words.
fn verdicts(program: &Program<'_>) -> Markup {
    let Some((ours, linux)) = program.side(System::Ceasefire).zip(program.side(System::Linux)) else {
        return html! { p.weak { "There is nothing to compare with." } };
    };
    let [mine, theirs] = [ours, linux].map(|side| side.spread(|report| report.interrupts(side.system)));
    let Some((mine, theirs)) = mine.zip(theirs) else {
        return html! { p.weak { "There is nothing to compare with." } };
    };
    let change = number::change(theirs.median, mine.median);
    html! {
        ul.verdicts {
            li {
                @match Verdict::of_runs(mine, theirs) {
                    Verdict::Same => "As many interrupts as Linux",
                    Verdict::Worse => strong.worse { "▲ More interrupts than Linux: " (change) },
                    Verdict::Better => { "Fewer interrupts than Linux: " (change) }
                }
            }
            @if let Some(ratio) = ratio(ours, linux) {
                li {
                    @let figures = format!("{} Linux's time", number::ratio(ratio.spread.median));
                    @match ratio.verdict() {
                        Verdict::Worse => strong.worse { "▲ Slower than Linux: " (figures) },
                        Verdict::Better => { "Faster than Linux: " (figures) }
                        Verdict::Same => { "No clear difference in time: " (figures) }
                    }
                    span.weak {
                        " ("
                        @if ratio.spread.least != ratio.spread.most {
                            (number::ratio(ratio.spread.least)) " to " (number::ratio(ratio.spread.most)) ", "
                        }
                        (crate::page::chart::ratios::pairs(ratio.pairs)) ")"
                    }
                }
            }
        }
    }
}

/// Pair by pair, where time passes on both sides in the same way.
fn ratio(ours: &Side<'_>, linux: &Side<'_>) -> Option<Ratio> {
    if ours.mode != linux.mode || ours.mode == Mode::Deterministic {
        return None;
    }
    let by_pair = |side: &Side<'_>| -> BTreeMap<u32, f64> {
        side.runs.iter().filter_map(|(run, report)| Some((run.pair?, elapsed(report) as f64))).collect()
    };
    let theirs = by_pair(linux);
    let pairs: Vec<_> =
        by_pair(ours).into_iter().filter_map(|(pair, time)| Some((time, *theirs.get(&pair)?))).collect();
    let spread = Spread::of_ratios(pairs.iter().copied())?;
    Some(Ratio { spread, pairs: pairs.len() })
}

/// The runs with mechanisms off as bars, beside the one with all of them on; nothing if there are none.
pub(super) fn ablation(program: &Program<'_>) -> Option<Figure> {
    if program.ablation.iter().all(|side| side.without.is_empty()) {
        return None;
    }
    let bar = |side: &Side<'_>| Bar {
        mark: side.mark(),
        name: if side.without.is_empty() { "all on".into() } else { off(side.without) },
        value: side.median(|report| report.interrupts(side.system)),
    };
    let bars: Vec<_> = program.ablation.iter().map(bar).collect();
    let rows = bars.iter().map(|bar| vec![bar.name.clone(), number::figure(bar.value)]).collect::<Vec<_>>();
    let groups =
        [Group { heading: String::new(), rows: vec![Row { name: String::new(), bars, bound: None }] }];
    let mode = program.ablation[0].mode.name();
    Some(Figure {
        title: html! { "With mechanisms switched off" },
        description: format!(
            "Interrupts for translations on Ceasefire in {mode} mode, with mechanisms switched off and with all of them on. The values are in the table below."
        ),
        height: bars::height(&groups),
        drawing: bars::draw(
            &groups,
            &format!("interrupts for translations, {mode} mode"),
            bars::most(&groups[0].rows),
        ),
        data: data(&["mechanisms", "interrupts"], &rows),
    })
}
