//! One run of a program that came to its end, on either side, and what one counts of it.

use protocol::report::{Report, Row};

use crate::result::{Run, System};

/// A run, its report and what the program printed.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) run: Run,
    pub(super) report: Report,
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
}

impl Trial {
    /// "run 1 on Linux".
    pub(super) fn name(&self) -> String {
        match self.run.pair {
            Some(pair) => format!("run {} on {}", pair + 1, self.run.system),
            None => format!("a run on {}", self.run.system),
        }
    }

    /// From the program's first instruction to its end, in nanoseconds of the guest's clock.
    pub(super) fn wall(&self) -> f64 {
        self.report.clock.program_end.saturating_sub(self.report.clock.program_start) as f64
    }
}

/// What the reports of both kernels have in common, under one name each.
pub(crate) trait Counts {
    /// The rows of a group, summed up.
    fn sum(&self, group: &str) -> u64;
    /// Interrupts received for the sake of translations, by all CPUs.
    fn interrupts(&self, system: System) -> u64;
    /// Interrupts received for a barrier, which on Linux are among all calls of a function on another CPU.
    fn other_calls(&self, system: System) -> u64;
}

impl Counts for Report {
    fn sum(&self, group: &str) -> u64 {
        self.group(group).map(Row::total).sum()
    }

    fn interrupts(&self, system: System) -> u64 {
        match system {
            System::Ceasefire => self.sum("sent") - self.total("sent", BARRIER),
            System::Linux => self.total("linux", "TLB"),
        }
    }

    fn other_calls(&self, system: System) -> u64 {
        match system {
            System::Ceasefire => self.total("sent", BARRIER),
            System::Linux => self.total("linux", "CAL").saturating_sub(self.total("linux", "TLB")),
        }
    }
}

/// The cause of interrupts that change no translation.
pub(super) const BARRIER: &str = "membarrier";

/// The run with the median number of interrupts: its counts stand for all, so that a table's rows add up.
pub(super) fn typical(trials: &[Trial]) -> Option<&Trial> {
    let mut sorted: Vec<_> = trials.iter().collect();
    sorted.sort_by_key(|trial| trial.report.interrupts(trial.run.system));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
impl Trial {
    /// A run on two CPUs that counted nothing.
    pub(super) fn sample(system: System, pair: u32) -> Self {
        use protocol::report::{Clock, Exit, Memory, SCHEMA};
        let report = Report {
            schema: SCHEMA.into(),
            exit: Exit::Code(0),
            cpus: 2,
            mechanisms: Vec::new(),
            ledger: Vec::new(),
            unknown_system_calls: Vec::new(),
            clock: Clock { program_start: 1_000_000, program_end: 3_000_000 },
            memory: Memory::default(),
            processor_time: None,
        };
        let run = Run {
            id: 0,
            system,
            without: Vec::new(),
            with: Vec::new(),
            mode: crate::result::Mode::Single,
            seed: None,
            cpus: 2,
            memory_mebibytes: 512,
            board: "q35".into(),
            command: vec!["/program".into()],
            wall_seconds: 1.0,
            load: Some(0.5),
            pair: Some(pair),
            traced: false,
            report: serde_json::Value::Null,
        };
        Trial { run, report, output: Vec::new(), errors: Vec::new() }
    }

    /// With a row, whose counts are those of CPU 0 and CPU 1.
    pub(super) fn with(mut self, group: &str, name: &str, per_cpu: [u64; 2]) -> Self {
        self.report.ledger.push(Row { group: group.into(), name: name.into(), per_cpu: per_cpu.into() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_in_the_middle_stands_for_all() {
        let trials: Vec<_> = [7, 100, 5]
            .into_iter()
            .map(|count| Trial::sample(System::Linux, 0).with("linux", "TLB", [count, 0]))
            .collect();
        assert_eq!(typical(&trials).unwrap().report.interrupts(System::Linux), 7);
        assert_eq!(typical(&trials[..2]).unwrap().report.interrupts(System::Linux), 7);
        assert!(typical(&[]).is_none());
    }

    #[test]
    fn barriers_are_no_interrupts_for_translations() {
        let ours = Trial::sample(System::Ceasefire, 0).with("sent", "munmap", [3, 1]).with(
            "sent",
            "membarrier",
            [5, 0],
        );
        assert_eq!(
            (ours.report.interrupts(System::Ceasefire), ours.report.other_calls(System::Ceasefire)),
            (4, 5)
        );
        let linux = Trial::sample(System::Linux, 0).with("linux", "TLB", [4, 0]).with("linux", "CAL", [9, 2]);
        assert_eq!((linux.report.interrupts(System::Linux), linux.report.other_calls(System::Linux)), (4, 7));
    }
}
