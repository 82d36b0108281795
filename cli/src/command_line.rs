//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::CpuList;
use crate::check::{self, Shard};
use crate::failure::Failure;
use crate::predict;
use crate::program::Companion;
use crate::qemu::Board;
use crate::size::{Limit, Memory};

/// Runs Linux programs on the Ceasefire kernel, and accounts for every interrupt that keeps its CPUs' translations coherent.
#[derive(Debug, Parser)]
#[command(
    name = "ceasefire",
    bin_name = "./ceasefire",
    version,
    max_term_width = 110,
    after_help = "New here? './ceasefire bench --quick' measures everything on both kernels in five minutes.",
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Measure all workloads here and on Linux: interrupts, instructions and times, with a table and a page at the end
    Bench(Bench),
    /// Run a program and show which CPUs were interrupted, why, and which interrupts were avoided
    Run(Box<Run>),
    /// Run a program on Debian's Linux kernel in the same machine, and show the interrupts that it counts
    Linux(Box<OnLinux>),
    /// Predict interrupts and times on up to 512 CPUs, under other kernels and techniques too, by a simulation
    Predict(Predict),
    /// Make an HTML page from saved results, several side by side
    Report(Report),
    /// Run a program on Ceasefire and on Linux in turn, and show side by side what coherence cost it
    Compare(Box<Compare>),
    /// Explore the schedules of coherence and memory on a simulated machine, and find the bugs that kernels once had
    Check(Check),
    /// Make programs of memory calls at random, run them on the simulated machine, here and on Linux, and compare what they observe
    Fuzz(Fuzz),
    /// Run the project's tests: on the host, of the models, and inside the guest
    Test(Test),
    /// Say what this machine has, what it lacks and how to get it
    Doctor,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Only these workloads; default: all
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Within five minutes: one number of CPUs, fewer operations, fewer pairs of runs (default: within fifteen)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Numbers of CPUs, such as 2,4,8 (default: 2,4,8, with --quick 4)
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) cpus: Option<CpuList>,
    /// Pairs of runs that times are taken from (default: 3, with --quick 2); further ones only if the time suffices
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) pairs: Option<u32>,
    /// Write the result to this file as JSON (docs/guide/results.md)
    #[arg(long, value_name = "FILE", default_value = "ceasefire-bench.json")]
    pub(crate) json: PathBuf,
    /// Write the page to this file
    #[arg(long, value_name = "FILE", default_value = "ceasefire-bench.html")]
    pub(crate) html: PathBuf,
    /// Compare with this Linux kernel (a bzImage) instead of Debian's
    #[arg(long, value_name = "PATH")]
    pub(crate) linux: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) guest: GuestOptions,
    /// Write the result to this file as JSON (docs/guide/results.md); it replaces an older one only when complete
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the kernel's log to this file as it comes
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel_log: Option<PathBuf>,
    /// Print no ledger and no notes: only what the program prints
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The program, as a path or a name in PATH, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Write the page to this file; it replaces an older one only when complete. Default: beside the first result
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Results that --json wrote (docs/guide/results.md)
    #[arg(required = true, value_name = "FILES")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Only these workloads; default: all ('help' lists them)
    #[arg(value_name = "WORKLOAD")]
    pub(crate) names: Vec<String>,
    /// Numbers of CPUs, 1 to 512, such as 2,64,512
    #[arg(long, value_name = "LIST", default_value = "2,8,32,128,512", value_parser = predict::parse_cpus)]
    pub(crate) cpus: predict::Cpus,
    /// Kernels and techniques, several with commas ('help' lists them)
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "linux-2015,linux,broadcast,lazy-free,ceasefire"
    )]
    pub(crate) policy: Vec<String>,
    /// What the CPUs are: bare, kvm, ipiv or firecracker
    #[arg(long, value_name = "MACHINE", default_value = "bare")]
    pub(crate) machine: String,
    /// Take values of parameters from this file: lines `name = value` in TOML ('--parameters help' lists them)
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// Other chances; the same number gives the same figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the predictions to this file as JSON (docs/guide/predict.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the tables of the documents to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) table: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) guest: GuestOptions,
    /// Runs on each side
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Also measure what each mechanism is worth to the program: one deterministic run with each switched off
    #[arg(long)]
    pub(crate) explain: bool,
    /// Another Linux kernel than Debian's: a bzImage
    #[arg(long, value_name = "PATH")]
    pub(crate) linux: Option<PathBuf>,
    /// Write everything measured to this file as JSON (docs/guide/results.md); it replaces an older one only when complete
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print no comparison: only what the program prints
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The program, as a path or a name in PATH, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct OnLinux {
    /// Another Linux kernel than Debian's: a bzImage
    #[arg(long, value_name = "PATH")]
    pub(crate) linux: Option<PathBuf>,
    /// Also count flushes of translations by reason; this takes time
    #[arg(long)]
    pub(crate) trace: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Only what ends within a few minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// More deviations in each schedule, and more schedules at random
    #[arg(long, conflicts_with = "quick")]
    pub(crate) deep: bool,
    /// Only this part (repeatable); default: all that the level has
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(check::part_names()))]
    pub(crate) part: Vec<String>,
    /// The seed of what is chosen at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads of this machine that work (default: one for each CPU)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Only the I-th of N shares of the work, for several machines (docs/guide/scale-out.md)
    #[arg(long, value_name = "I/N", value_parser = Shard::parse, requires = "json")]
    pub(crate) shard: Option<Shard>,
    /// Run nothing: join the results of all shards, or present one result again
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["quick", "deep", "part", "seed", "jobs", "shard", "names"])]
    pub(crate) merge: Vec<PathBuf>,
    /// Show one schedule step by step, with the translation caches beside it: NAME:SCHEDULE, as a finding names it
    #[arg(long, value_name = "SEED", conflicts_with_all = ["quick", "deep", "json", "table", "part", "shard", "merge", "names"])]
    pub(crate) replay: Option<String>,
    /// Write the result to this file as JSON; it replaces an older one only when complete
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the tables of the documents to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) table: Option<PathBuf>,
    /// Only scenarios and past bugs with one of these in their names
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// How long (default: 2, unless --programs is given)
    #[arg(long, value_name = "N")]
    pub(crate) minutes: Option<f64>,
    /// How many programs
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// The same programs for the same number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Which of machine, ceasefire and linux
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "machine,ceasefire,linux")]
    pub(crate) systems: Vec<String>,
    /// CPUs of the guests (default: 2 and 4 in turn)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) cpus: Option<u32>,
    /// Only the I-th of N parts of the programs
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Write the result to this file as JSON; it replaces an older one only when complete
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page of the documents to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) table: Option<PathBuf>,
    /// Keep each program that differs, as small as it could be made, in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    /// Run the programs of this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["minutes", "programs", "shard", "keep"])]
    pub(crate) replay: Option<PathBuf>,
    /// Run nothing: add up results that --json wrote
    #[arg(long, value_name = "FILES", num_args = 1.., conflicts_with_all = ["minutes", "programs", "shard", "keep", "replay"])]
    pub(crate) merge: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Only what is quick (a few minutes)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also what repeats tests many times, and each sound one under the sanitizer (hours)
    #[arg(long, conflicts_with = "quick")]
    pub(crate) deep: bool,
    /// Only tests with this in their name
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Option<String>,
}

/// The guest that a program runs in: the same for every command that runs one.
#[derive(Clone, Debug, Args)]
pub(crate) struct GuestOptions {
    /// CPUs of the guest, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) cpus: u32,
    /// Memory of the guest, such as 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = Memory::parse)]
    pub(crate) memory: Memory,
    /// Switch a mechanism off (repeatable, or several with commas; 'help' lists them)
    #[arg(long, value_name = "MECHANISM", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Switch a mechanism on that is off by default (repeatable, or several with commas; 'help' lists them)
    #[arg(long, value_name = "MECHANISM", value_delimiter = ',')]
    pub(crate) with: Vec<String>,
    /// The board
    #[arg(long, value_name = "BOARD", default_value_t = Board::Q35, value_enum)]
    pub(crate) machine: Board,
    /// How the CPUs advance: each on a host thread, or in turn on one. Default: parallel if the host has as many
    #[arg(long, value_enum, conflicts_with = "deterministic")]
    pub(crate) mode: Option<Turns>,
    /// Run on a clock that counts instructions: the same run gives the same output, ledger and counts
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// With --deterministic: let the kernel preempt at other instants, the same ones for the same number
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Watch every access, and stop at the first through a stale translation (two to six times slower; not on Linux)
    #[arg(long)]
    pub(crate) sanitize: bool,
    /// End the run after this time, such as 90s or 5m, or never with 'none'
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Limit::parse)]
    pub(crate) timeout: Limit,
    /// Pack a file or folder beside the program (repeatable); a relative GUEST is below /
    #[arg(long, value_name = "HOST[:GUEST]")]
    pub(crate) file: Vec<OsString>,
    /// Give the guest a disk, /dev/vda, /dev/vdb and so on (repeatable); what it writes goes into FILE, except under compare
    #[arg(long, value_name = "FILE[:ro]")]
    pub(crate) disk: Vec<OsString>,
    /// Set a variable for the program (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Boot this kernel instead of building the project's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) kernel_image: Option<PathBuf>,
    /// Further words for the kernel's command line
    #[arg(long, value_name = "WORDS", hide = true)]
    pub(crate) kernel: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Turns {
    Parallel,
    Single,
}

impl GuestOptions {
    pub(crate) fn companions(&self) -> Vec<Companion> {
        self.file.iter().map(|text| Companion::parse(text)).collect()
    }
}

/// Reads the command line.
///
/// # Errors
/// A usage failure of one sentence. Help and version are printed here, and end the process.
pub(crate) fn read() -> Result<CommandLine, Failure> {
    CommandLine::try_parse().map_err(|error| {
        if !error.use_stderr() || std::env::args_os().len() < 2 {
            error.exit();
        }
        Failure::usage(one_sentence(&error.to_string()))
    })
}

/// clap's first paragraph without its label, which is the sentence that matters, and its tip.
fn one_sentence(message: &str) -> String {
    let first = message.split("\n\n").next().unwrap_or(message);
    let words: Vec<_> = first.split_whitespace().collect();
    let sentence = words.join(" ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence);
    match message.lines().find_map(|line| line.trim().strip_prefix("tip: ")) {
        Some(tip) => format!("{sentence} ({tip})"),
        None => sentence.to_owned(),
    }
}
