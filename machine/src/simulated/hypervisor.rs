//! A hypervisor that gives the host's processors to other guests now and then.
//!
//! A virtual CPU that it has descheduled makes no step, takes no interrupt and walks no tables until it runs again. Under a hypervisor
//! that knows its guests it is marked, for the other CPUs to see, and whoever wants to have something dropped there may leave a word
//! that all of it is to be dropped before the CPU runs. Mark and word are looked at in one step when the CPU is to run, so that no word
//! comes too late and none is lost.

use coherence::{CpuId, CpuSet};
use explorer::{Digest, narrate, narrate_of};

use super::machine::Machine;
use super::past_bug::HardwareMistake;
use super::platform::machine_step;

/// What a machine runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hypervisor {
    /// The CPUs are real.
    Absent,
    /// It deschedules one of them at a time.
    Deschedules,
    /// It drops what a descheduled CPU has cached, if it is asked to, before that runs again.
    FlushesBeforeRunning,
}

/// How a virtual CPU stands with the hypervisor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VirtualCpu {
    /// It does not run.
    pub(super) stopped: bool,
    /// It is marked as one that does not run.
    marked: bool,
    /// It is to be flushed before it runs.
    flush: bool,
    /// What a hypervisor that looks before it clears has seen of `flush`.
    seen: Option<bool>,
}

impl VirtualCpu {
    pub(super) fn state(&self) -> Digest {
        let seen = self.seen.map_or(0, |flush| 1 + u64::from(flush));
        let flags = u64::from(self.stopped) | u64::from(self.marked) << 1 | u64::from(self.flush) << 2;
        Digest::EMPTY.with(flags | seen << 3)
    }
}

impl Machine {
    /// The CPUs that the hypervisor may deschedule now: one at a time is enough.
    pub(super) fn may_stop(&self) -> Vec<usize> {
        if self.build.hypervisor == Hypervisor::Absent {
            return Vec::new();
        }
        let hidden = self.hidden();
        let is_undisturbed = hidden.virtual_cpus.iter().all(|cpu| !cpu.stopped && !cpu.marked);
        (0..self.build.cpus).filter(|cpu| is_undisturbed && !explorer::is_over(*cpu)).collect()
    }

    /// The CPUs that will run again.
    pub(super) fn will_run(&self) -> Vec<usize> {
        let hidden = self.hidden();
        (0..self.build.cpus).filter(|cpu| hidden.virtual_cpus[*cpu].stopped).collect()
    }

    /// Those that have been marked and have not stopped, as it is with a mistake.
    pub(super) fn will_stop(&self) -> Vec<usize> {
        let hidden = self.hidden();
        let is_meant = |cpu: &usize| hidden.virtual_cpus[*cpu].marked && !hidden.virtual_cpus[*cpu].stopped;
        (0..self.build.cpus).filter(is_meant).collect()
    }

    fn knows_its_guests(&self) -> bool {
        self.build.hypervisor == Hypervisor::FlushesBeforeRunning
    }

    /// The hypervisor deschedules a CPU.
    pub(super) fn deschedule(&self, cpu: usize) {
        self.hidden().virtual_cpus[cpu].marked = self.knows_its_guests();
        if self.build.mistake == Some(HardwareMistake::MarksBeforeItStops) {
            return narrate_of(cpu, || {
                "(is marked as descheduled, and has an instruction to finish)".to_owned()
            });
        }
        self.stop(cpu);
    }

    /// It stops. Whatever it has stored is visible.
    pub(super) fn stop(&self, cpu: usize) {
        explorer::serialise_cpu(cpu);
        explorer::pause(cpu, true);
        self.hidden().virtual_cpus[cpu].stopped = true;
        narrate_of(cpu, || "(is descheduled)".to_owned());
    }

    /// It runs again, after what was left to be done.
    pub(super) fn run_again(&self, cpu: usize) {
        let looks_first = self.build.mistake == Some(HardwareMistake::LooksBeforeItClears);
        let mut guard = self.hidden();
        let hidden = &mut *guard;
        let standing = &mut hidden.virtual_cpus[cpu];
        if looks_first && standing.seen.is_none() {
            standing.seen = Some(standing.flush);
            drop(guard);
            return narrate_of(cpu, || "(is about to run again)".to_owned());
        }
        let flush = standing.seen.unwrap_or(standing.flush);
        *standing = VirtualCpu::default();
        if flush {
            hidden.caches[cpu].drop_all_under(None);
        }
        drop(guard);
        explorer::pause(cpu, false);
        narrate_of(cpu, || format!("(runs again{})", if flush { ", with empty caches" } else { "" }));
    }

    /// This CPU leaves word for those of the targets that are marked; says which they are.
    pub(super) fn leave_word(&self, targets: &CpuSet) -> CpuSet {
        if !self.knows_its_guests() {
            return CpuSet::EMPTY;
        }
        let marked = |target: &CpuId| {
            explorer::step(machine_step());
            explorer::serialise();
            let mut hidden = self.hidden();
            let standing = &mut hidden.virtual_cpus[target.index()];
            standing.flush |= standing.marked;
            let is_marked = standing.marked;
            drop(hidden);
            explorer::observe(u64::from(is_marked));
            if is_marked {
                narrate(|| format!("leaves word to flush CPU {target} before it runs"));
            }
            is_marked
        };
        targets.iter().filter(marked).collect()
    }
}
