//! How far the work is: one line for each thing that is done, and news of what takes long.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whoever looks at a terminal sees what runs now; a log has a line for what takes so long.
const LONG: Duration = Duration::from_secs(20);

/// A live line is cut off here, so that it stays one.
const WIDTH: usize = 100;

/// What runs, and what was said about it.
pub(super) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
    is_terminal: bool,
}

#[derive(Default)]
struct State {
    running: Vec<Running>,
    /// Units of work that are not done.
    left: usize,
    ended: bool,
}

struct Running {
    worker: usize,
    name: &'static str,
    since: Instant,
    schedules: u64,
    told: Instant,
}

impl Progress {
    pub(super) fn new(units: usize) -> Self {
        let state = Mutex::new(State { left: units, ..State::default() });
        Progress { state, changed: Condvar::new(), is_terminal: stderr().is_terminal() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker begins.
    pub(super) fn begin(&self, worker: usize, name: &'static str) {
        let now = Instant::now();
        self.state().running.push(Running { worker, name, since: now, schedules: 0, told: now });
    }

    /// It has explored another schedule.
    pub(super) fn advance(&self, worker: usize) {
        let mut state = self.state();
        if let Some(running) = state.running.iter_mut().find(|running| running.worker == worker) {
            running.schedules += 1;
        }
    }

    /// It is done with that; these lines say what came of it.
    pub(super) fn end(&self, worker: usize, lines: &str) {
        let mut state = self.state();
        state.running.retain(|running| running.worker != worker);
        state.left -= 1;
        if !lines.is_empty() {
            self.clear();
            print!("{lines}");
            let _ = stdout().flush();
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }

    /// Tells what runs until [`Progress::stop`].
    pub(super) fn tell(&self) {
        let interval = if self.is_terminal { Duration::from_millis(250) } else { Duration::from_secs(1) };
        let mut state = self.state();
        while !state.ended {
            let waited = self.changed.wait_timeout(state, interval);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if self.is_terminal && !state.ended {
                let names: Vec<_> = state.running.iter().map(|running| running.line()).collect();
                let line = format!("{} left; {}", state.left, names.join(", "));
                eprint!("\r\x1b[K{}", line.chars().take(WIDTH).collect::<String>());
                continue;
            }
            for running in state.running.iter_mut().filter(|running| running.told.elapsed() >= LONG) {
                running.told = Instant::now();
                eprintln!("… {}", running.line());
            }
        }
        self.clear();
    }

    /// Nothing more will happen.
    pub(super) fn stop(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}

impl Running {
    fn line(&self) -> String {
        format!("{}: {} schedules in {} s", self.name, self.schedules, self.since.elapsed().as_secs())
    }
}
