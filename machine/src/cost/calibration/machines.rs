//! The machines that the published figures come from, as far as they are known, and runs on them.

use super::super::{Case, Outcome, Parameters, Policy, Setup, Workload, simulate};

/// A desktop of one socket.
pub(super) fn haswell() -> Parameters {
    Parameters { gigahertz: 3.3, ..Parameters::START }
}

/// Two sockets of four cores at 2 GHz on a front-side bus, xAPIC: a write for each target.
pub(super) fn harpertown() -> Parameters {
    Parameters {
        gigahertz: 2.0,
        socket: 4.0,
        cluster: 1.0,
        interrupt_write: 300.0,
        deliver: 1110.0,
        line_cross: 150.0,
        ..Parameters::START
    }
}

/// Many cores on sockets of so many.
pub(super) fn server(socket: usize) -> Parameters {
    Parameters { gigahertz: 2.4, socket: socket as f64, ..Parameters::START }
}

/// 36 cores, each with two CPUs.
pub(super) fn milan() -> Parameters {
    Parameters { gigahertz: 2.5, socket: 128.0, cores: 36.0, fault: 1480.0, ..Parameters::START }
}

/// Two sockets of four cores.
pub(super) fn westmere(shared_counter: bool) -> Parameters {
    Parameters {
        gigahertz: 2.4,
        socket: 4.0,
        shared_counter: f64::from(u8::from(shared_counter)),
        ..Parameters::START
    }
}

/// One of the workload's cases whose name begins so.
pub(super) fn case(workload: &str, start: &str, cpus: usize) -> Case {
    let cases = Workload::find(workload).map(|workload| workload.cases(cpus)).unwrap_or_default();
    let begins = |case: &Case| case.name.as_ref().is_none_or(|name| name.starts_with(start));
    cases.into_iter().find(begins).expect("calibration names cases that there are")
}

/// A run of that case.
pub(super) fn run(parameters: &Parameters, policy: &str, case: &Case) -> Outcome {
    run_policy(parameters, &Policy::find(policy).expect("calibration names policies that there are"), case)
}

pub(super) fn run_policy(parameters: &Parameters, policy: &Policy, case: &Case) -> Outcome {
    simulate(&Setup { parameters, policy, case, seed: 1, operations: None })
}
