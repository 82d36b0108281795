//! Instructions for each operation, on the instruction clock: exact, of all CPUs together, kernel and program.

use maud::{Markup, html};

use crate::number;
use crate::result::System;
use crate::result::case::{Case, by_workload, off};

/// The table; nothing if none were counted.
pub(super) fn table(cases: &[Case<'_>]) -> Option<Markup> {
    let counted: fn(&&Case<'_>) -> bool = |case| case.instructions().is_some();
    cases.iter().any(|case| counted(&case)).then(|| {
        html! {
            div.wide tabindex="0" role="region" aria-label="Instructions per operation" {
                table.bench {
                    thead {
                        tr.over {
                            th colspan="2" {}
                            th.measured colspan="3" scope="colgroup" { "instructions per operation" }
                            th {}
                        }
                        tr {
                            th scope="col" { "case" }
                            th.number scope="col" { "CPUs" }
                            th.number scope="col" { "Ceasefire without …" }
                            th.number scope="col" { "Ceasefire" }
                            th.number scope="col" { "Linux" }
                            th scope="col" { "Ceasefire beside Linux" }
                        }
                    }
                    @for (workload, cases) in by_workload(cases) {
                        @if cases.iter().any(|case| counted(&case)) {
                            tbody {
                                tr.workload { th colspan="6" scope="rowgroup" { (workload) } }
                                @for case in cases.iter().filter(counted) { (row(case)) }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn row(case: &Case<'_>) -> Markup {
    let (ours, linux) = (case.instructions(), case.instructions_of(System::Linux, &[]));
    let is_worse = ours.zip(linux).is_some_and(|(ours, linux)| ours > linux);
    html! {
        tr class=[is_worse.then_some("worse")] {
            th scope="row" { (case.name()) }
            td.number { (case.cpus) }
            td.number {
                @for names in case.variants() {
                    @if let Some(count) = case.instructions_of(System::Ceasefire, names) {
                        div { span.off { (off(names)) } " " (whole(Some(count))) }
                    }
                }
            }
            td.number.ours { (whole(ours)) }
            td.number.linux { (whole(linux)) }
            td {
                @match ours.zip(linux) {
                    None => span.weak { "not measured on both" },
                    Some((ours, linux)) if is_worse => strong.worse { "▲ worse than Linux: " (number::change(linux, ours)) },
                    Some((ours, linux)) => { "fewer: " (number::change(linux, ours)) }
                }
            }
        }
    }
}

fn whole(count: Option<f64>) -> Markup {
    html! {
        @match count {
            Some(count) => (number::whole(count.max(0.0).round() as u64)),
            None => span.weak title="not measured" { "–" },
        }
    }
}
