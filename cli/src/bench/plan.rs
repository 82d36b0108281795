//! Which runs are made, in which order, and which of them may be left out when time is short.
//!
//! The plan is a list of phases. What every table needs comes first: counts on ours at one number of CPUs, which depend on no host
//! and run side by side; then one run of each side after the other at the same number, alone, which gives times, and Linux's
//! counts with them, because a boot of Linux is the dearest thing here. Other numbers of CPUs and further pairs follow, each
//! phase for all workloads before the next begins: whoever stops the measurement has everything broadly, and something deeply.
//! Runs that must be compared are one group: they are made one right after the other, or not at all.

use crate::qemu;
use crate::result::{Mode, System};

/// Pairs of runs at the number of CPUs that is measured most, when nobody says otherwise.
pub(super) fn usual_pairs(quick: bool) -> u32 {
    if quick { 2 } else { 3 }
}

/// A workload as the plan sees it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Rising, with `base` among them.
    pub(super) cpus: Vec<u32>,
    /// The number of CPUs that is measured first and most.
    pub(super) base: u32,
    pub(super) without: Vec<&'static str>,
    /// Whether Linux is there.
    pub(super) on_linux: bool,
    /// Whether instructions can be compared, which takes one CPU.
    pub(super) on_one_cpu: bool,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Unique in the plan, and the run's number in the result.
    pub(super) id: u32,
    pub(super) subject: usize,
    pub(super) system: System,
    pub(super) without: Vec<&'static str>,
    pub(super) mode: Mode,
    pub(super) cpus: u32,
    /// Runs with the same number are compared.
    pub(super) pair: Option<u32>,
}

impl Step {
    /// The emulator's mode for it.
    pub(super) fn emulator_mode(&self) -> qemu::Mode {
        match self.mode {
            Mode::Deterministic => qemu::Mode::Deterministic { seed: None },
            Mode::Single => qemu::Mode::Single,
            Mode::Parallel => qemu::Mode::Parallel,
        }
    }
}

/// Runs that are made in one go.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// For the sentence that says what was left out.
    pub(super) what: String,
    /// Never left out.
    pub(super) essential: bool,
    /// Independent of what else the host does.
    pub(super) side_by_side: bool,
    pub(super) groups: Vec<Vec<Step>>,
}

/// The plan for these workloads.
pub(super) fn phases(subjects: &[Subject], quick: bool, pairs: u32) -> Vec<Phase> {
    let mut plan = Plan { subjects, next_id: 0, next_pair: 0, phases: Vec::new() };
    let base = |subject: &Subject| vec![subject.base];
    let others = |subject: &Subject| {
        subject.cpus.iter().copied().filter(|cpus| *cpus != subject.base).collect::<Vec<_>>()
    };
    plan.counts("counts", true, base);
    plan.pairs("a first pair of runs", true, true, base);
    plan.counts("counts with other numbers of CPUs", false, others);
    plan.pairs("runs with other numbers of CPUs", false, true, others);
    for pair in 1..pairs {
        plan.pairs("further pairs of runs", false, false, base);
        if pair == 1 && !quick {
            plan.instructions();
        }
    }
    if pairs == 1 && !quick {
        plan.instructions();
    }
    plan.phases.retain(|phase| !phase.groups.is_empty());
    plan.phases
}

struct Plan<'a> {
    subjects: &'a [Subject],
    next_id: u32,
    next_pair: u32,
    phases: Vec<Phase>,
}

impl Plan<'_> {
    /// Ours on the instruction clock, with and without the mechanism concerned.
    fn counts(&mut self, what: &str, essential: bool, cpus: impl Fn(&Subject) -> Vec<u32>) {
        let mut groups = Vec::new();
        for (index, subject) in self.subjects.iter().enumerate() {
            for cpus in cpus(subject) {
                for without in variants(subject) {
                    groups.push(vec![self.step(
                        index,
                        System::Ceasefire,
                        without,
                        Mode::Deterministic,
                        cpus,
                        None,
                    )]);
                }
            }
        }
        self.phases.push(Phase { what: what.into(), essential, side_by_side: true, groups });
    }

    /// One run of each side after the other; with `without`, also ours without the mechanism.
    fn pairs(&mut self, what: &str, essential: bool, without: bool, cpus: impl Fn(&Subject) -> Vec<u32>) {
        let mut groups = Vec::new();
        for (index, subject) in self.subjects.iter().enumerate() {
            for cpus in cpus(subject) {
                self.next_pair += 1;
                let pair = Some(self.next_pair);
                let mut group =
                    vec![self.step(index, System::Ceasefire, Vec::new(), Mode::Single, cpus, pair)];
                if subject.on_linux {
                    group.push(self.step(index, System::Linux, Vec::new(), Mode::Single, cpus, pair));
                }
                if without && !subject.without.is_empty() {
                    let without = subject.without.clone();
                    group.push(self.step(index, System::Ceasefire, without, Mode::Single, cpus, pair));
                }
                groups.push(group);
            }
        }
        self.phases.push(Phase { what: what.into(), essential, side_by_side: false, groups });
    }

    /// Both sides on the instruction clock, on the one CPU with which Linux starts there.
    fn instructions(&mut self) {
        let mut groups = Vec::new();
        for (index, subject) in self.subjects.iter().enumerate() {
            if !(subject.on_linux && subject.on_one_cpu) {
                continue;
            }
            let mut group = vec![self.step(index, System::Linux, Vec::new(), Mode::Deterministic, 1, None)];
            if !subject.cpus.contains(&1) {
                group.extend(variants(subject).into_iter().map(|without| {
                    self.step(index, System::Ceasefire, without, Mode::Deterministic, 1, None)
                }));
            }
            groups.push(group);
        }
        let what = "instructions on one CPU".into();
        self.phases.push(Phase { what, essential: false, side_by_side: true, groups });
    }

    fn step(
        &mut self,
        subject: usize,
        system: System,
        without: Vec<&'static str>,
        mode: Mode,
        cpus: u32,
        pair: Option<u32>,
    ) -> Step {
        self.next_id += 1;
        Step { id: self.next_id - 1, subject, system, without, mode, cpus, pair }
    }
}

/// With all mechanisms, and without those concerned.
fn variants(subject: &Subject) -> Vec<Vec<&'static str>> {
    let mut variants = vec![Vec::new(), subject.without.clone()];
    variants.dedup();
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject { cpus: vec![2, 4, 8], base: 4, without: vec!["promotion"], on_linux: true, on_one_cpu: true }
    }

    fn short(step: &Step) -> (System, bool, Mode, u32) {
        (step.system, step.without.is_empty(), step.mode, step.cpus)
    }

    #[test]
    fn essential_runs_come_first_and_linux_boots_once_for_them() {
        let phases = phases(&[subject(), subject()], true, 2);
        let essential: Vec<_> = phases.iter().filter(|phase| phase.essential).collect();
        assert!(phases[0].essential && phases[1].essential && essential.len() == 2);
        assert!(essential[0].side_by_side && !essential[1].side_by_side);
        let linux = essential.iter().flat_map(|phase| phase.groups.iter().flatten());
        assert_eq!(linux.filter(|step| step.system == System::Linux).count(), 2);
        let (ours, linux) = (System::Ceasefire, System::Linux);
        let pair: Vec<_> = phases[1].groups[0].iter().map(short).collect();
        assert_eq!(
            pair,
            [(ours, true, Mode::Single, 4), (linux, true, Mode::Single, 4), (ours, false, Mode::Single, 4)]
        );
    }

    #[test]
    fn times_are_taken_alone_and_in_pairs_of_their_own() {
        let phases = phases(&[subject(), subject()], false, 3);
        let steps: Vec<_> = phases.iter().flat_map(|phase| phase.groups.iter().flatten()).collect();
        for phase in &phases {
            let timed = phase.groups.iter().flatten().any(|step| step.mode != Mode::Deterministic);
            assert!(!(timed && phase.side_by_side), "{}", phase.what);
        }
        for pair in steps.iter().filter_map(|step| step.pair) {
            let of_pair: Vec<_> = steps.iter().filter(|step| step.pair == Some(pair)).collect();
            assert!(
                of_pair.iter().all(|step| step.subject == of_pair[0].subject && step.cpus == of_pair[0].cpus)
            );
        }
        let at_base = |step: &&&Step| {
            step.subject == 0 && step.cpus == 4 && step.mode == Mode::Single && step.system == System::Linux
        };
        assert_eq!(steps.iter().filter(at_base).count(), 3);
        let mut ids: Vec<_> = steps.iter().map(|step| step.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), steps.len());
    }

    #[test]
    fn linux_is_on_the_instruction_clock_on_one_cpu_only() {
        let phases = phases(&[subject()], false, 1);
        let steps = phases.iter().flat_map(|phase| phase.groups.iter().flatten());
        let counted: Vec<_> = steps
            .filter(|step| step.system == System::Linux && step.mode == Mode::Deterministic)
            .map(|step| step.cpus)
            .collect();
        assert_eq!(counted, [1]);
    }

    #[test]
    fn an_absent_linux_is_not_run() {
        let ours_only = Subject { on_linux: false, ..subject() };
        let phases = phases(&[ours_only], false, 3);
        let mut steps = phases.iter().flat_map(|phase| phase.groups.iter().flatten());
        assert!(steps.clone().count() > 0 && steps.all(|step| step.system == System::Ceasefire));
    }
}
