//! What the kernel tells its host when a run ends.
//!
//! The kernel fills a [`Report`] and writes it as JSON to its last debug port, the command
//! reads it back. Fields are only ever added; a change of meaning changes [`SCHEMA`].

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Name and version of this form.
pub const SCHEMA: &str = "ceasefire.report/1";

/// One run, seen from inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`] as the kernel knew it.
    pub schema: String,
    /// How the program ended.
    pub exit: Exit,
    /// CPUs that were up.
    pub cpus: u32,
    /// Every mechanism and whether it was on.
    pub mechanisms: Vec<Mechanism>,
    /// Every counter of the ledger, also those that are zero.
    pub ledger: Vec<Row>,
    /// System calls that the program made and the kernel does not have, by number.
    pub unknown_system_calls: Vec<UnknownCall>,
    /// Instants of the run.
    pub clock: Clock,
    /// Memory of the machine.
    pub memory: Memory,
    /// What the program and everything it started spent on CPUs; none where a kernel did not say.
    #[serde(default)]
    pub processor_time: Option<ProcessorTime>,
}

/// How a program ended: exactly one of the two is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned or called `exit` with this status.
    Code(u8),
    /// This signal killed it.
    Signal(u8),
}

/// One mechanism that avoids interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mechanism {
    /// The name that `--without` takes.
    pub name: String,
    /// Whether it was on.
    pub on: bool,
}

/// One counter of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What kind of event: rows of one group add up to something.
    pub group: String,
    /// Which of them: unique within the group.
    pub name: String,
    /// Events on each CPU, by CPU number.
    pub per_cpu: Vec<u64>,
}

impl Report {
    /// The ledger's rows of one group, in their order.
    pub fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Row> {
        self.ledger.iter().filter(move |row| row.group == group)
    }

    /// A row's sum over all CPUs; 0 when there is no such row.
    pub fn total(&self, group: &str, name: &str) -> u64 {
        self.group(group).filter(|row| row.name == name).map(Row::total).sum()
    }
}

impl Row {
    /// Events on all CPUs.
    pub fn total(&self) -> u64 {
        self.per_cpu.iter().sum()
    }
}

/// A system call that the kernel does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCall {
    /// Its number on x86-64 Linux.
    pub number: u64,
    /// How often it was called.
    pub calls: u64,
}

/// Instants of a run, in nanoseconds since the kernel's first instruction. On the instruction clock (deterministic runs) one
/// nanosecond is one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Just before the program's first instruction.
    pub program_start: u64,
    /// When the program's end was noticed.
    pub program_end: u64,
}

/// Processor time of all CPUs together, in nanoseconds. The sum is exact on both kernels, its parts are estimates: Linux asks at
/// each timer tick what is running, ours measures long calls and samples short ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// In the program.
    pub user: u64,
    /// In the kernel on its behalf.
    pub system: u64,
}

/// Memory, in bytes. Zero where a kernel cannot say (the peer of comparisons knows less than ours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// What the kernel hands out: the board's memory without what was taken before it could, such as its own image.
    pub total: u64,
    /// What was free just before the program's first instruction.
    pub free_at_start: u64,
    /// What was free when the program and everything it started were gone.
    pub free_at_end: u64,
    /// Code and data of the kernel's image.
    pub kernel_image: u64,
    /// What the kernel notes about each frame.
    pub frame_metadata: u64,
    /// What the kernel's heap has taken at the end, and never gives back.
    pub heap: u64,
    /// What of the heap was in use at the end.
    pub heap_in_use: u64,
    /// The packed files.
    pub initramfs: u64,
}
