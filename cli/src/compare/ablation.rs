//! `--explain`: what each mechanism is worth to this program, found by switching one off at a time.
//!
//! The runs are deterministic, so that what changes from one to the next is the mechanism and its consequences and nothing else.
//! A mechanism can change a program's schedule, and with it counts that have nothing to do with it; a change of the number of
//! interrupts within one in fifty is therefore not put down to the mechanism.

use super::prose::{count, list};
use super::trial::{Counts, Trial};
use crate::mechanisms;
use crate::result::System;
use crate::tables;

/// The runs, the first with everything on that the options leave on.
#[derive(Debug)]
pub(super) struct Ablation {
    pub(super) cases: Vec<Case>,
}

/// One run with something switched off.
#[derive(Debug)]
pub(super) struct Case {
    /// What; the empty list in the first case.
    pub(super) off: Vec<&'static str>,
    /// The run, or the sentence that says why there is none.
    pub(super) trial: Result<Trial, String>,
}

/// What is switched off, case by case, beyond what is off already: nothing, each mechanism that is on, all of them.
pub(super) fn cases(with: &[&'static str], without: &[&'static str]) -> Vec<Vec<&'static str>> {
    let added = with.iter().copied();
    let on: Vec<_> = mechanisms::usual().chain(added).filter(|name| !without.contains(name)).collect();
    let single = on.iter().map(|name| vec![*name]);
    let mut cases: Vec<_> = std::iter::once(Vec::new()).chain(single).collect();
    if on.len() > 1 {
        cases.push(on);
    }
    cases
}

impl Ablation {
    /// Sentences about the number of interrupts; none when the runs failed.
    pub(super) fn sentences(&self) -> Vec<String> {
        let (Some(base), Some(others)) = (self.base(), self.cases.get(1..)) else { return Vec::new() };
        let sent = |trial: &Trial| {
            trial.report.interrupts(System::Ceasefire) + trial.report.other_calls(System::Ceasefire)
        };
        let base = sent(base);
        let single = others.iter().filter_map(|case| match (&case.off[..], &case.trial) {
            ([name], Ok(trial)) => Some((*name, sent(trial))),
            _ => None,
        });
        let (changing, idle): (Vec<_>, Vec<_>) =
            single.partition(|(_, interrupts)| interrupts.abs_diff(base) * 50 > base);
        let mut changing: Vec<_> = changing;
        changing.sort_by_key(|(_, interrupts)| std::cmp::Reverse(interrupts.abs_diff(base)));
        let mut sentences: Vec<_> = changing.iter().map(|(name, off)| effect(name, *off, base)).collect();
        let idle: Vec<_> = idle.iter().map(|(name, _)| (*name).to_owned()).collect();
        if changing.is_empty() && !idle.is_empty() {
            sentences.push(format!(
                "On the instruction clock it sends {} whichever mechanism is switched off.",
                count(base, "interrupt")
            ));
        } else if !idle.is_empty() {
            sentences.push(format!(
                "Switching {} off does not change the number.",
                list(&idle).replace(" and ", " or ")
            ));
        }
        sentences
    }

    /// All cases side by side.
    pub(super) fn table(&self) -> String {
        let mut table = tables::plain(&[
            "mechanism off",
            "requests",
            "interrupts",
            "flushes: all",
            "ranges",
            "pages",
            "instructions",
        ]);
        tables::align_right(&mut table, &[1, 2, 3, 4, 5, 6]);
        let all = self.cases.iter().map(|case| case.off.len()).max().unwrap_or(0);
        for case in &self.cases {
            let name = match &case.off[..] {
                [] => "(none)".into(),
                names if names.len() > 1 && names.len() == all => "all of them".to_owned(),
                names => names.join(", "),
            };
            match &case.trial {
                Ok(trial) => table.add_row(std::iter::once(name).chain(figures(trial))),
                Err(_) => table.add_row([name.as_str(), "failed"]),
            };
        }
        let failures = self.cases.iter().filter_map(|case| case.trial.as_ref().err());
        let failures: String = failures.map(|sentence| format!("\n{sentence}")).collect();
        tables::lines(&table) + &failures
    }

    fn base(&self) -> Option<&Trial> {
        self.cases.first()?.trial.as_ref().ok()
    }
}

/// "Without promotion it sends 30000 interrupts instead of 15000: promotion removes 15000 of them."
fn effect(name: &str, off: u64, base: u64) -> String {
    let more = if off > base {
        format!("{name} removes {}", off - base)
    } else {
        format!("here {name} costs {}", base - off)
    };
    format!("Without {name} it sends {off} interrupts instead of {base}: {more}.")
}

fn figures(trial: &Trial) -> [String; 6] {
    let executed =
        |names: &[&str]| names.iter().map(|name| trial.report.total("executed", name)).sum::<u64>();
    [
        trial.report.sum("requested"),
        trial.report.sum("sent"),
        executed(&["local_full", "remote_full", "switch_full", "lazy_full"]),
        executed(&["local_ranged", "remote_ranged"]),
        executed(&["local_pages", "remote_pages"]),
        trial.wall() as u64,
    ]
    .map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(off: &[&'static str], interrupts: u64) -> Case {
        let trial = Trial::sample(System::Ceasefire, 0).with("sent", "mprotect", [interrupts, 0]);
        Case { off: off.to_vec(), trial: Ok(trial) }
    }

    #[test]
    fn every_mechanism_that_is_on_is_switched_off_once() {
        let names: Vec<_> = mechanisms::usual().collect();
        let all = cases(&[], &[]);
        assert_eq!(all.len(), names.len() + 2);
        assert_eq!((all[0].len(), all[1].len(), all.last().unwrap().len()), (0, 1, names.len()));
        assert!(cases(&[], &["lazy"]).iter().all(|case| !case.contains(&"lazy")));
        assert_eq!(cases(&[], &names), [Vec::<&str>::new()]);
        assert_eq!(cases(&[], &names[1..]), [vec![], vec![names[0]]]);
        assert_eq!(cases(&["clean"], &names), [vec![], vec!["clean"]]);
    }

    #[test]
    fn what_a_mechanism_removes_is_said_and_noise_is_not() {
        let ablation = Ablation {
            cases: vec![
                case(&[], 15000),
                case(&["lazy"], 15003),
                case(&["ranged"], 15000),
                case(&["promotion"], 30000),
                case(&["gather"], 14000),
                case(&["lazy", "ranged", "promotion", "gather"], 30003),
            ],
        };
        assert_eq!(
            ablation.sentences(),
            [
                "Without promotion it sends 30000 interrupts instead of 15000: promotion removes 15000.",
                "Without gather it sends 14000 interrupts instead of 15000: here gather costs 1000.",
                "Switching lazy or ranged off does not change the number.",
            ]
        );
        let table = ablation.table();
        assert!(table.contains("(none)") && table.contains("all of them"), "{table}");
    }

    #[test]
    fn a_program_that_nothing_helps_and_runs_that_failed() {
        let nothing = Ablation { cases: vec![case(&[], 0), case(&["lazy"], 0), case(&["ranged"], 0)] };
        assert_eq!(
            nothing.sentences(),
            ["On the instruction clock it sends no interrupts whichever mechanism is switched off."]
        );
        let failed = Case { off: vec!["lazy"], trial: Err("it hung".into()) };
        let some = Ablation { cases: vec![case(&[], 3), failed] };
        assert!(some.sentences().is_empty());
        assert!(some.table().contains("failed") && some.table().ends_with("it hung"));
    }
}
