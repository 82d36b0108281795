//! Two processes on the port of `kernel.rs`: its CPUs use their pages while others take those away.

mod agent;
mod kernel;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};

use agent::take_back;
use coherence::{Cause, Mode, Platform};
use kernel::{
    CPU, CPUS, MACHINE, PAGES, PRESENT, Process, STALE_USES, WRITABLE, change, safe_point, store, switch,
};

/// One CPU: runs the processes in turn, borrows each for a while, and now and then changes one, until it has done its turns.
fn cpu(number: usize, processes: &[Arc<Process>; 2], turns: usize, running: &AtomicUsize) {
    CPU.set(number);
    for turn in 0..turns {
        let process = &processes[turn / 3 % 2];
        switch(Some(process));
        for step in 0..20 {
            store(process, (turn as u64 + step) % PAGES);
            safe_point(Mode::User);
            if step % 8 == 0 {
                // Others go on meanwhile, also where the host has fewer CPUs than this.
                std::thread::yield_now();
            }
        }
        let page = turn as u64 % PAGES;
        match (turn + number) % 5 {
            0 => change(process, page..page + 1, Cause::Munmap, |_| 0),
            1 => change(process, 0..PAGES, Cause::Mprotect, |entry| entry & !WRITABLE),
            2 => change(process, 0..PAGES, Cause::Mprotect, |entry| entry | ((entry & PRESENT) * WRITABLE)),
            3 => MACHINE.barrier(&process.space),
            _ => take_back(processes, page),
        }
        MACHINE.platform().without_interrupts(|| MACHINE.go_lazy(&process.space));
        std::thread::yield_now();
        safe_point(Mode::Idle);
    }
    switch(None);
    // Others may have met this CPU before it left, and wait for its answer.
    running.fetch_sub(1, Release);
    while running.load(Acquire) > 0 {
        MACHINE.platform().relax();
    }
}

/// Runs all CPUs, if need be with the flushes of a cause left out. Says how often a frame was used that had gone to somebody else.
pub(crate) fn run(turns: usize, left_out: Option<Cause>) -> usize {
    MACHINE.suppress(left_out);
    STALE_USES.store(0, Relaxed);
    let processes = [1, 2].map(|number| Arc::new(Process::new(number)));
    let running = AtomicUsize::new(CPUS);
    std::thread::scope(|scope| {
        let (processes, running) = (&processes, &running);
        (0..CPUS).for_each(|number| drop(scope.spawn(move || cpu(number, processes, turns, running))));
    });
    processes.iter().for_each(|process| change(process, 0..PAGES, Cause::Exit, |_| 0));
    STALE_USES.load(Relaxed)
}

fn main() {
    println!("{} uses of frames that had gone to somebody else", run(2_000, None));
    for (row, count) in MACHINE.ledger().totals().filter(|(_, count)| *count > 0) {
        let (group, name) = row.names();
        println!("{group:>10} {name:<20} {count:>8}  {}", row.explanation());
    }
    println!("{} without munmap's flushes", run(2_000, Some(Cause::Munmap)));
}
