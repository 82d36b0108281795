//! Reclaim of mapped files: target 6.

use super::super::Parameters;
use super::machines::{case, run};
use super::{Target, row, target};

/// Interrupts each second of all CPUs.
fn rate(parameters: &Parameters, policy: &str, cpus: usize) -> f64 {
    let outcome = run(parameters, policy, &case("lru-file-mmap-read", "", cpus));
    let each_second = cpus as f64 * 1e9 / outcome.nanoseconds_per_operation;
    outcome.interrupts_per_operation * each_second
}

pub(super) fn reclaim() -> Target {
    let rates = |parameters: &Parameters, cpus: usize| {
        ["linux-2015", "linux"].map(|policy| rate(parameters, policy, cpus) / 1000.0)
    };
    let four = Parameters { socket: 12.0, ..Parameters::START };
    let [before, after] = rates(&four, 48);
    let [alone_before, alone_after] = rates(&Parameters::START, 12);
    const MIXED: &str = "On four sockets the owners of a batch's pages are more mixed than by the lengths in which CPUs put pages on the lists; \
        nothing in the model mixes them.";
    let rows = vec![
        row("4 sockets, 48 CPUs, page by page", "1000/s", 900.0, before).fitted("file_page"),
        row("4 sockets, 48 CPUs, in batches", "1000/s", 180.0, after).missed(MIXED),
        row("4 sockets, page by page beside batches", "", 5.0, before / after).missed(MIXED),
        row("1 socket, page by page beside batches", "", 11.1, alone_before / alone_after),
    ];
    target(6, "Interrupts while mapped files are reclaimed", rows)
}
