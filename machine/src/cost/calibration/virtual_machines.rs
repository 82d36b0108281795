//! Under a hypervisor: targets 7 and 9.

use super::super::{Case, Parameters, Platform, Policy};
use super::machines::{case, run, run_policy};
use super::{Row, Target, row, target};

/// How much faster the allocator's workload is when a flush leaves out virtual CPUs that do not run. Those run after `most` microseconds
/// at the latest.
fn gain(machines: usize, most: f64) -> f64 {
    let mut parameters = Parameters::START;
    Platform::Kvm.apply(&mut parameters);
    // As many virtual CPUs as real ones in each machine: each runs one turn in so many.
    parameters.preempted_share = 1.0 - 1.0 / machines as f64;
    parameters.preempted_most = most * 1000.0;
    // Linux of 2017 kept the areas' lock while it flushed.
    let policy = Policy { downgrades: false, ..Policy::find("linux").expect("it is a policy") };
    let case = case("ebizzy", "threads-", 64);
    let waiting = run_policy(&parameters, &policy, &case).nanoseconds_per_operation;
    let sparing = Parameters { flush_when_run: 1.0, ..parameters };
    waiting / run_policy(&sparing, &policy, &case).nanoseconds_per_operation
}

/// Fitted: how late a CPU runs that others wait for, in microseconds.
const DIRECTED: f64 = 24.0;

pub(super) fn overcommitted() -> Target {
    let figure = |machines: usize| format!("{machines} machines of 64 CPUs on 64");
    let rows = vec![
        row(figure(1), "", 1.04, gain(1, DIRECTED)),
        row(figure(2), "", 1.78, gain(2, DIRECTED)).fitted("how late a CPU runs that others spin for: 24 µs"),
        row(figure(3), "", 2.32, gain(3, DIRECTED)),
        row(format!("{}, up to 6 ms late", figure(2)), "", 1.78, gain(2, 6000.0)).missed(
            "KVM notices CPUs that spin and runs the ones that they wait for; it does not leave them to their turn, as §5.2 has it.",
        ),
    ];
    target(7, "Sparing virtual CPUs that do not run, ebizzy (KVM)", rows)
}

/// The guest's flush of a page is dear because the hypervisor's pages are cached in pieces.
fn guest() -> Parameters {
    let mut parameters = Parameters { invalidate_page: 2846.0 - 1050.0, gigahertz: 3.0, ..Parameters::START };
    Platform::Kvm.apply(&mut parameters);
    parameters
}

/// Cycles of one of the two calls of a pair, by what the pair takes with and without the flush of a promotion.
fn calls(threads: usize) -> (f64, f64) {
    let parameters = guest();
    let case: Case = case("mprotect-flip", "threads-", threads);
    let cycles = |policy: &str| {
        (run(&parameters, policy, &case).nanoseconds_per_operation - 50.0) * parameters.gigahertz
    };
    let (both, one) = (cycles("ceasefire-without-promotion"), cycles("ceasefire"));
    (both / 2.0, one - both / 2.0)
}

pub(super) fn protection() -> Target {
    let ((alone, alone_skipped), (beside, beside_skipped)) = (calls(1), calls(2));
    let rows: Vec<Row> = vec![
        row("mprotect with its flush, 1 thread", "cycles", 5342.0, alone)
            .fitted("invalidate_page in that guest"),
        row("mprotect with its flush, 2 threads", "cycles", 10458.0, beside),
        row("mprotect without, 1 thread", "cycles", 2496.0, alone_skipped).fitted("mprotect"),
        row("mprotect without, 2 threads", "cycles", 2505.0, beside_skipped),
    ];
    target(9, "Flushing a promotion, or not (KVM guest)", rows)
}
