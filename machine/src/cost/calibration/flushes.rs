//! Flushes of one caller: targets 1, 3, 4 and 8.

use super::super::{Change, Kind, Parameters, Policy, Work, ask};
use super::machines::{case, haswell, run_policy, server, westmere};
use super::{Row, Target, row, target};

fn linux(concurrent: bool) -> Policy {
    Policy { concurrent, ..Policy::find("linux").expect("it is a policy") }
}

/// madvise(MADV_DONTNEED) alone, that is without the touch that the workload needs.
fn dontneed(threads: usize, concurrent: bool) -> f64 {
    let parameters = Parameters { fault: 0.0, page_lists: 0.0, system_call: 100.0, ..haswell() };
    let outcome = run_policy(&parameters, &linux(concurrent), &case("shared-dontneed", "threads-", threads));
    // The touch is a fault, with its way in and out and its locks, and 50 ns of the program's own.
    let locks = 8.0 * parameters.locked_operation / parameters.gigahertz;
    outcome.nanoseconds_per_operation - parameters.system_call - 50.0 - locks
}

pub(super) fn one_socket() -> Target {
    let published = [
        (1, false, 661.0),
        (2, false, 1436.0),
        (4, false, 1571.0),
        (1, true, 663.0),
        (2, true, 1225.0),
        (4, true, 1421.0),
    ];
    let rows = published.into_iter().map(|(threads, concurrent, nanoseconds)| {
        let order = if concurrent { "flushing meanwhile" } else { "flushing first" };
        let figure = format!("MADV_DONTNEED, {threads} threads, {order}");
        let row = row(figure, "ns", nanoseconds, dontneed(threads, concurrent));
        if threads == 1 { row.fitted("dontneed") } else { row }
    });
    target(1, "MADV_DONTNEED beside spinning threads, one socket (Haswell)", rows.collect())
}

/// The curve has no other CPU in it: fixed cost, and pages up to the ceiling, as `coherence` decides.
pub(super) fn ranges() -> Target {
    let parameters = Parameters::START;
    let cycles = |pages: u64| {
        let requests =
            ask(&Change::plain(Kind::Remove, pages), linux(true).switches, parameters.ceiling as u64);
        let here = requests.iter().map(|request| match request.here {
            Work::None => 0.0,
            Work::Pages(pages) => pages as f64 * parameters.invalidate_page,
            Work::All => parameters.invalidate_all,
        });
        parameters.flush_fixed + here.sum::<f64>()
    };
    let published = [(1, 1276.0), (2, 1505.0), (4, 2447.0), (8, 3542.0), (16, 5041.0), (33, 8534.0)];
    // The two ends give both parameters; between them the model says that the curve is a line.
    let mut rows: Vec<Row> = published
        .into_iter()
        .map(|(pages, published)| {
            let row = row(format!("flush of {pages} pages"), "cycles", published, cycles(pages));
            if [1, 33].contains(&pages) { row.fitted("flush_fixed, invalidate_page") } else { row }
        })
        .collect();
    rows.push(row("flush of everything", "cycles", 2283.0, cycles(34)).missed(
        "Loading CR3 took 96 cycles in another measurement of that year; what else the 2283 of a kernel build contain is not known.",
    ));
    target(3, "Flushing a range (kernel build, 2014)", rows)
}

/// A round of interrupts to all: what a flush takes its caller beyond its own part.
fn round(parameters: &Parameters, cpus: usize) -> f64 {
    let outcome = run_policy(parameters, &linux(true), &case("mprotect-flip", "threads-", cpus));
    let alone = run_policy(parameters, &linux(true), &case("mprotect-flip", "threads-", 1));
    // Both calls of the pair interrupt.
    (outcome.nanoseconds_per_operation - alone.nanoseconds_per_operation) / 2.0
}

pub(super) fn many_sockets() -> Target {
    let rows = vec![
        row("round of interrupts, 2 sockets, 16 CPUs", "µs", 2.7, round(&server(8), 16) / 1000.0),
        row("round of interrupts, 8 sockets, 120 CPUs", "µs", 6.6, round(&server(15), 120) / 1000.0)
            .fitted("post"),
    ];
    target(4, "Interrupting every CPU of a large machine (LATR's)", rows)
}

pub(super) fn counter() -> Target {
    let time = |shared| round(&westmere(shared), 8);
    let ratio = time(true) / time(false);
    target(
        8,
        "One counter for all answers, or a line for each (FreeBSD)",
        vec![row("one counter beside lines, 8 CPUs", "", 2.0, ratio)],
    )
}
