//! What is predicted of techniques before anybody builds them: the last paragraph of the performance page's 5.3.
//!
//! Each claim says what the page expects and what the model finds, which is not always the same.

use super::super::{Outcome, Parameters};
use super::machines::{case, run};

/// One technique, and the figures that are claimed of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name in the page's section 4.
    pub technique: &'static str,
    /// What the page expects.
    pub expected: &'static str,
    /// The model's figure for so many CPUs.
    pub figures: Vec<(usize, f64)>,
    /// Their unit.
    pub unit: &'static str,
    /// Whether the model agrees.
    pub holds: bool,
    /// What else there is to say; empty if nothing.
    pub remark: &'static str,
}

const CPUS: [usize; 4] = [2, 8, 64, 512];

/// All claims. Takes seconds.
pub fn claims() -> Vec<Claim> {
    vec![
        sharers(
            "ceasefire+sharers",
            "M3, locks as they are",
            "The line of the areas' lock goes around: its readers wait for it.",
        ),
        sharers(
            "ceasefire+arenas",
            "M3, and locks of each CPU's own",
            "Flat needs both: nobody told, and no line shared.",
        ),
        promotion(),
        pools(),
        barriers(),
    ]
}

fn figures(figure: impl Fn(usize) -> f64) -> Vec<(usize, f64)> {
    CPUS.into_iter().map(|cpus| (cpus, figure(cpus))).collect()
}

fn is_flat(figures: &[(usize, f64)]) -> bool {
    let values = || figures.iter().map(|(_, value)| *value);
    values().fold(0.0, f64::max) <= values().fold(f64::INFINITY, f64::min) * 1.25
}

fn outcome(policy: &str, workload: &str, start: &str, cpus: usize) -> Outcome {
    run(&Parameters::START, policy, &case(workload, start, cpus))
}

fn sharers(policy: &'static str, technique: &'static str, remark: &'static str) -> Claim {
    let figures = figures(|cpus| outcome(policy, "tlb-flush2", "", cpus).nanoseconds_per_operation / 1000.0);
    let (expected, unit) = ("tlb_flush2: the same time for each iteration whatever the number of CPUs", "µs");
    Claim { technique, expected, holds: is_flat(&figures), figures, unit, remark }
}

fn promotion() -> Claim {
    // A pair without its promotion's flush, less half of a pair with both.
    let figures = figures(|cpus| {
        let pair = |policy| outcome(policy, "mprotect-flip", "", cpus).nanoseconds_per_operation;
        (pair("ceasefire") - pair("ceasefire-without-promotion") / 2.0) / 1000.0
    });
    Claim {
        technique: "M1",
        expected: "a promotion costs the same whatever the number of CPUs",
        holds: is_flat(&figures),
        figures,
        unit: "µs",
        remark: "Built: the mechanism promotion.",
    }
}

fn pools() -> Claim {
    let figures =
        figures(|cpus| outcome("ceasefire+pools", "lru-file-mmap-read", "", cpus).interrupts_per_operation);
    Claim {
        technique: "M4",
        expected: "reclaim: less than one interrupt for a thousand pages",
        holds: figures.iter().all(|(_, each)| *each < 1e-3),
        figures,
        unit: "",
        remark: "One flush for a pool of 4096 frames is N − 1 interrupts: beyond 4 CPUs the pool must grow with them.",
    }
}

fn barriers() -> Claim {
    let figures = figures(|cpus| {
        outcome("ceasefire", "membarrier-loop", "beside-calls", cpus).nanoseconds_per_operation / 1000.0
    });
    Claim {
        technique: "M6",
        expected: "a barrier beside threads in system calls costs the same beside any number",
        holds: is_flat(&figures),
        figures,
        unit: "µs",
        remark: "Built. What looking at so many CPUs' words costs is not in the model.",
    }
}
