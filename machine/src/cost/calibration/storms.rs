//! All threads flush at once: target 5.

use super::machines::{case, milan, run};
use super::{Row, Target, row, target};

const THREADS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 72];
const INTERRUPTS: [f64; 8] = [3.17, 4.73, 6.21, 12.3, 21.7, 42.2, 101.0, 118.0];
const BROADCAST: [f64; 8] = [3.29, 4.72, 3.88, 6.31, 11.7, 26.7, 58.5, 72.5];

pub(super) fn many_threads() -> Target {
    let time = |policy: &str, threads: usize| {
        run(&milan(), policy, &case("tlb-flush2", "threads-", threads)).nanoseconds_per_operation / 1000.0
    };
    let times = THREADS.map(|threads| (time("linux", threads), time("broadcast", threads)));
    let mut rows: Vec<Row> = Vec::new();
    for (index, threads) in THREADS.into_iter().enumerate() {
        let (interrupts, broadcast) = times[index];
        let row_of =
            |what: &str, published, model| row(format!("{what}, {threads} threads"), "µs", published, model);
        let (with_interrupts, with_broadcast) = (
            row_of("interrupts", INTERRUPTS[index], interrupts),
            row_of("broadcast", BROADCAST[index], broadcast),
        );
        rows.push(if threads == 1 {
            with_interrupts.fitted("fault on that machine")
        } else {
            with_interrupts
        });
        rows.push(match threads {
            1 => with_broadcast.fitted("fault on that machine"),
            32 => with_broadcast.fitted("page_lists"),
            64 => with_broadcast.fitted("core_sharing"),
            _ => with_broadcast,
        });
        if threads >= 4 {
            let published = INTERRUPTS[index] / BROADCAST[index];
            rows.push(row(
                format!("interrupts beside broadcast, {threads} threads"),
                "",
                published,
                interrupts / broadcast,
            ));
        }
    }
    let work = |index: usize| THREADS[index] as f64 / times[index].0;
    let peak = (0..THREADS.len()).max_by(|one, other| work(*one).total_cmp(&work(*other))).unwrap_or(0);
    rows.push(row(
        "interrupts, threads at which most is done (16 to 32)",
        "threads",
        32.0,
        THREADS[peak] as f64,
    ));
    target(5, "All threads at once, tlb_flush2 (Milan, 36 cores)", rows)
}
