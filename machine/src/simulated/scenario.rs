//! A scenario: what is set up, and what each CPU does then.

use coherence::Switches;
use explorer::Program;

use super::hypervisor::Hypervisor;
use super::machine::{Build, SimulatedEnvironment};
use super::past_bug::Mistake;
use super::remote::Remote;

/// What one CPU does.
pub(super) type Script = fn(&SimulatedEnvironment);

/// A race between CPUs, small enough to be explored.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What may go wrong in it, in a sentence.
    pub about: &'static str,
    /// What is done before the CPUs run side by side: spaces are made, pages mapped, things cached.
    pub(super) setup: Script,
    /// What each CPU does.
    pub(super) cpus: &'static [Script],
    /// How many tags the machine has.
    pub tags: usize,
    /// How CPUs reach each other without interrupts.
    pub(super) remote: Remote,
    /// Pages of which entries leave a CPU's caches by themselves.
    pub(super) forgotten: &'static [u64],
    /// What the CPUs run under.
    pub(super) hypervisor: Hypervisor,
    /// The pages at which a device works that walks the tables too; none, if there is no device.
    pub(super) device: &'static [u64],
    /// The mechanisms of `coherence`.
    pub switches: Switches,
    /// Pages that walkers may run ahead to.
    pub walked: &'static [u64],
    /// Whether CPUs count their crossings between user mode and kernel, so that barriers leave out those in the kernel.
    pub crossings: bool,
    /// Whether there is RAM for large pages, and whoever has room for one gets one.
    pub large_pages: bool,
    /// Instructions that CPUs may fetch ahead of executing them.
    pub code: &'static [u64],
    /// A CPU that takes one interrupt which cannot be masked, and the address that its handler reads.
    pub sampled: Option<(usize, u64)>,
    /// Whether threads move from CPU to CPU; all are in one space then.
    pub moves: bool,
    /// Up to which price all schedules are explored by `--quick`, by default, and by `--deep`.
    pub bounds: [u8; 3],
}

impl Scenario {
    /// The defaults: no tags, all mechanisms, walkers at rest.
    pub const BASE: Self = Scenario {
        name: "",
        about: "",
        setup: |_| {},
        cpus: &[],
        tags: 1,
        remote: Remote::Never,
        forgotten: &[],
        hypervisor: Hypervisor::Absent,
        device: &[],
        switches: Switches::DEFAULT,
        walked: &[],
        crossings: false,
        large_pages: false,
        code: &[],
        sampled: None,
        moves: false,
        bounds: [3, 4, 5],
    };

    /// A fresh machine, set up.
    pub(super) fn program(&'static self, mistake: Option<Mistake>) -> Program {
        let build = Build {
            cpus: self.cpus.len(),
            tags: self.tags,
            switches: self.switches,
            walkers: !self.walked.is_empty(),
            pages: self.walked,
            crossings: self.crossings,
            large_pages: self.large_pages,
            code: self.code,
            sampled: self.sampled,
            fault: mistake.and_then(Mistake::fault),
            kernel_mistake: mistake.and_then(Mistake::of_kernel),
            remote: self.remote,
            forgotten: self.forgotten,
            hypervisor: self.hypervisor,
            device: self.device,
            mistake: mistake.and_then(Mistake::of_the_hardware),
        };
        let machine = SimulatedEnvironment::new(build);
        (self.setup)(&machine);
        if let Some((cpu, _)) = self.sampled {
            explorer::unmaskable(cpu, 1);
        }
        let cpus = self.cpus.iter().map(|script| -> Box<dyn FnOnce()> {
            let machine = machine.clone();
            Box::new(move || {
                explorer::preemptible(self.moves);
                script(&machine);
            })
        });
        let cpus = cpus.collect();
        Program { cpus, finally: Box::new(move || machine.finish()) }
    }
}
