//! Memory barriers: target 2.

use super::machines::{case, harpertown, run};
use super::{Row, Target, row, target};

pub(super) fn membarrier() -> Target {
    let published = [(1, 2.017), (2, 2.19), (4, 2.54), (7, 3.067)];
    let rows: Vec<Row> = published
        .into_iter()
        .map(|(others, microseconds)| {
            let outcome = run(&harpertown(), "linux", &case("membarrier-loop", "expedited-", others + 1));
            let figure = format!("barrier beside {others} threads");
            let row = row(figure, "µs", microseconds, outcome.nanoseconds_per_operation / 1000.0);
            if others == 1 { row.fitted("deliver on that machine") } else { row }
        })
        .collect();
    target(2, "membarrier beside busy threads (E5405)", rows)
}
