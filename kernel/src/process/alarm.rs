//! Alarms: timers of user mode that end in a signal. `setitimer` and `timer_create` are both made of them.
//!
//! An alarm runs on a clock. Real time is the machine's own; the CPU time of a process or thread stands still
//! while it sleeps, so an alarm on it looks at that clock when real time says that it could be due at the
//! earliest, and looks again later if it is not.
//!
//! Expiry happens in the timer's interrupt. Locks: the alarm's state, then (after it is released) those of
//! signals. The machine's `Timer` waits for a running expiry when it is cancelled, so whoever sets an alarm
//! holds no lock that expiry takes.

use super::signal::{Information, Origin, Signal, code, expire_timer_signal, send_to_process};
use super::{Process, Thread};
use crate::sync::{InterruptLock, Mutex};
use crate::time::{self, Expire, Timer};
use alloc::sync::{Arc, Weak};

/// Least real time between two expiries of one alarm, so that no program can keep a CPU in the timer
/// interrupt.
const SHORTEST_PERIOD: u64 = 50_000;
/// The same for an alarm whose signal nobody took yet: at first, and as it grows while that goes on. No expiry is
/// lost by it, as those that were passed over are counted, and taking the signal ends the pause.
const FIRST_PAUSE: u64 = 1_000_000;
const LONGEST_PAUSE: u64 = 1_000_000_000;

/// What an alarm goes by.
#[derive(Clone)]
pub(crate) enum AlarmClock {
    /// Nanoseconds since boot.
    Boot,
    /// CPU time of the alarm's process.
    ProcessTime,
    /// CPU time of one thread.
    ThreadTime(Weak<Thread>),
}

/// What happens when it expires.
#[derive(Clone)]
pub(crate) enum Notice {
    /// Nothing: it is only looked at.
    None,
    /// `setitimer`: this signal to the process.
    Signal(Signal),
    /// RLIMIT_CPU: SIGXCPU, and from so many nanoseconds of CPU time on SIGKILL.
    ProcessorLimit {
        /// The hard limit.
        hard: u64,
    },
    /// `timer_create`: a signal with the timer's id and value, to the process or one thread.
    Timer {
        /// The timer's id.
        id: i32,
        /// The signal.
        signal: Signal,
        /// `sigev_value`.
        value: u64,
        /// SIGEV_THREAD_ID.
        thread: Option<Weak<Thread>>,
    },
}

/// How an alarm is set: nanoseconds until it expires (0: not at all) and between expiries (0: once).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setting {
    /// Until the next expiry.
    pub(crate) remaining: u64,
    /// Between expiries.
    pub(crate) interval: u64,
}

/// An alarm of a process.
pub(crate) struct Alarm {
    shared: Arc<Shared>,
    /// Held while it is set, so that the machine's timer is armed by one task at a time.
    setting: Mutex<()>,
}

struct Shared {
    process: Weak<Process>,
    clock: AlarmClock,
    notice: Notice,
    state: InterruptLock<State>,
    /// Taken out when the alarm goes, which ends the circle of references.
    timer: InterruptLock<Option<Arc<Timer>>>,
}

#[derive(Default)]
struct State {
    /// When it expires next, by its own clock.
    deadline: Option<u64>,
    interval: u64,
    /// Real time that the next expiry must at least be away.
    pause: u64,
}

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new(process: &Arc<Process>, clock: AlarmClock, notice: Notice) -> Alarm {
        let shared = Arc::new(Shared {
            process: Arc::downgrade(process),
            clock,
            notice,
            state: InterruptLock::new(State::default()),
            timer: InterruptLock::new(None),
        });
        let timer = Arc::new(Timer::new(shared.clone()));
        *shared.timer.lock() = Some(timer);
        Alarm { shared, setting: Mutex::new(()) }
    }

    /// The present time of its clock.
    pub(crate) fn now(&self) -> u64 {
        self.shared.now()
    }

    /// Sets it to expire at `deadline` by its clock (`None`: not at all) and every `interval` after. Returns
    /// how it was set before.
    pub(crate) fn set(&self, deadline: Option<u64>, interval: u64) -> Setting {
        let _alone = self.setting.lock();
        let Some(timer) = self.shared.timer.lock().clone() else { return Setting::default() };
        timer.cancel();
        let before = self.get();
        *self.shared.state.lock() = State { deadline, interval, pause: 0 };
        if let Some(deadline) = deadline {
            timer.at(self.shared.earliest(deadline));
        }
        before
    }

    /// Its signal was taken: expiries that paused for that go on at once. Returns how many the pause passed over.
    pub(crate) fn taken(&self) -> u64 {
        let paused = core::mem::take(&mut self.shared.state.lock().pause) != 0;
        if !paused {
            return 0;
        }
        let _alone = self.setting.lock();
        let passed_over = self.shared.advance(self.shared.now()).unwrap_or(0);
        let next = self.shared.state.lock().deadline;
        let timer = self.shared.timer.lock().clone();
        if let Some((deadline, timer)) = next.zip(timer) {
            timer.at(self.shared.earliest(deadline).max(time::now() + SHORTEST_PERIOD));
        }
        passed_over
    }

    /// How it is set.
    pub(crate) fn get(&self) -> Setting {
        let now = self.shared.now();
        let state = self.shared.state.lock();
        // One that is due but has not expired yet shows the least time that is not "never".
        let remaining = state.deadline.map_or(0, |deadline| deadline.saturating_sub(now).max(1));
        Setting { remaining, interval: state.interval }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let timer = self.shared.timer.lock().take();
        drop(timer);
    }
}

impl Shared {
    fn now(&self) -> u64 {
        match &self.clock {
            AlarmClock::Boot => time::now(),
            AlarmClock::ProcessTime => self.process.upgrade().map_or(0, |process| process.cpu_time()),
            AlarmClock::ThreadTime(thread) => thread.upgrade().map_or(0, |thread| thread.cpu_time()),
        }
    }

    /// The earliest real time at which the clock could show `deadline`.
    fn earliest(&self, deadline: u64) -> u64 {
        let now = time::now();
        let distance = deadline.saturating_sub(self.now());
        match &self.clock {
            AlarmClock::Boot => deadline,
            AlarmClock::ThreadTime(_) => now.saturating_add(distance.max(SHORTEST_PERIOD)),
            AlarmClock::ProcessTime => {
                let threads = self.process.upgrade().map_or(1, |process| process.thread_count().max(1));
                now.saturating_add((distance / threads as u64).max(SHORTEST_PERIOD))
            }
        }
    }

    /// Moves the deadline past `now`; returns how many expiries that skips, or `None` if it is not due.
    fn advance(&self, now: u64) -> Option<u64> {
        let mut state = self.state.lock();
        let deadline = state.deadline?;
        if deadline > now {
            return None;
        }
        if state.interval == 0 {
            state.deadline = None;
            return Some(1);
        }
        let missed = (now - deadline) / state.interval;
        state.deadline = Some(deadline.saturating_add((missed + 1).saturating_mul(state.interval)));
        Some(missed + 1)
    }

    /// Sends the signal. Returns whether it is news: false if the last one was not taken yet, or nobody wants any.
    fn send(&self, expiries: u64) -> bool {
        let Some(process) = self.process.upgrade() else { return false };
        match &self.notice {
            Notice::None => false,
            Notice::Signal(signal) => {
                let waiting = process.signals.lock().pending.set().contains(*signal);
                // A standard signal always has room.
                let _ = send_to_process(&process, Information::from_kernel(*signal));
                !waiting && !process.action(*signal).ignores(*signal)
            }
            Notice::ProcessorLimit { hard } => {
                let signal = if self.now() >= *hard { Signal::SIGKILL } else { Signal::SIGXCPU };
                // As above.
                let _ = send_to_process(&process, Information::from_kernel(signal));
                true
            }
            Notice::Timer { id, signal, value, thread } => {
                let overrun = i32::try_from(expiries - 1).unwrap_or(i32::MAX);
                let origin = Origin::Timer { timer: *id, overrun, value: *value };
                let information = Information { signal: *signal, error: 0, code: code::SI_TIMER, origin };
                let thread = thread.as_ref().map(Weak::upgrade);
                match thread {
                    None => expire_timer_signal(&process, None, information),
                    Some(Some(thread)) => expire_timer_signal(&process, Some(&thread), information),
                    // The thread that wanted it is gone.
                    Some(None) => false,
                }
            }
        }
    }
}

impl Expire for Shared {
    fn expire(&self) {
        if let Some(expiries) = self.advance(self.now()) {
            let is_news = self.send(expiries);
            let mut state = self.state.lock();
            state.pause = if is_news { 0 } else { (state.pause * 4).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
        }
        let (next, pause) = {
            let state = self.state.lock();
            (state.deadline, state.pause)
        };
        if let Some(deadline) = next {
            let at = self.earliest(deadline).max(time::now() + pause.max(SHORTEST_PERIOD));
            if let Some(timer) = &*self.timer.lock() {
                timer.again_from_target(at);
            }
        }
    }
}
