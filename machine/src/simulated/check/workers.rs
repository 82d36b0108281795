//! Several threads of the host, which take units of work in turn. Whatever a run knows belongs to its thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::progress::Progress;

/// Ends the progress also if a worker gives up.
struct Ending<'a>(&'a Progress);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Does each unit on some thread. `work` says what came of it, in lines; what it is given is to be called after each schedule.
pub(super) fn share_out<U: Sync>(
    units: &[U],
    threads: usize,
    name: impl Fn(&U) -> &'static str + Sync,
    work: impl Fn(&U, &dyn Fn()) -> String + Sync,
) {
    let progress = Progress::new(units.len());
    let next = AtomicUsize::new(0);
    let worker = |worker: usize| {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            progress.begin(worker, name(unit));
            let lines = work(unit, &|| progress.advance(worker));
            progress.end(worker, &lines);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| progress.tell());
        let _ending = Ending(&progress);
        thread::scope(|workers| {
            for number in 0..threads.min(units.len()) {
                let worker = &worker;
                workers.spawn(move || worker(number));
            }
        });
    });
}
