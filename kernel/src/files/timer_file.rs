//! Timers as files: what `timerfd_create` makes.
//!
//! How often a timer has expired follows from the clock, so a periodic timer interrupts once and then only
//! after somebody has read it. The interrupt is for those who wait or poll.

use super::file::{File, Patience};
use super::readiness::{Observers, Readiness};
use super::transfer::Destination;
use super::waiting;
use crate::sync::{InterruptLock, Mutex, WaitQueue};
use crate::syscall::Errno;
use crate::time::{self, Expire, Timer};
use alloc::sync::Arc;

/// What a timer is set to, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setting {
    /// Time until the next expiry; None if disarmed.
    pub(crate) remaining: Option<u64>,
    /// Time between expiries; 0 for a timer that expires once.
    pub(crate) interval: u64,
}

#[derive(Clone, Copy)]
struct Schedule {
    /// The first expiry that has not been read, in nanoseconds since boot.
    next: Option<u64>,
    interval: u64,
}

struct Shared {
    schedule: InterruptLock<Schedule>,
    expired: WaitQueue,
    observers: Observers,
}

impl Expire for Shared {
    fn expire(&self) {
        self.expired.wake_all();
        self.observers.announce(Readiness::READABLE);
    }
}

pub(crate) struct TimerFile {
    shared: Arc<Shared>,
    /// Held while the timer is armed or disarmed.
    timer: Mutex<Timer>,
    /// Whether absolute times are those of the wall clock.
    realtime: bool,
}

impl TimerFile {
    pub(crate) fn new(realtime: bool) -> Self {
        let shared = Arc::new(Shared {
            schedule: InterruptLock::new(Schedule { next: None, interval: 0 }),
            expired: WaitQueue::new(),
            observers: Observers::new(),
        });
        Self { timer: Mutex::new(Timer::new(shared.clone())), shared, realtime }
    }

    /// Sets the timer to expire at `value` (or after it, unless `absolute`; 0 disarms) and returns the former
    /// setting.
    pub(crate) fn set(&self, value: u64, interval: u64, absolute: bool) -> Setting {
        let timer = self.timer.lock();
        let former = self.setting();
        let offset = if self.realtime { time::realtime_offset() } else { 0 };
        let deadline = if absolute { value.saturating_sub(offset) } else { time::now().saturating_add(value) };
        let next = (value != 0).then_some(deadline);
        *self.shared.schedule.lock() = Schedule { next, interval };
        match next {
            Some(deadline) => timer.at(deadline),
            None => {
                timer.cancel();
            }
        }
        former
    }

    /// What the timer is set to now.
    pub(crate) fn setting(&self) -> Setting {
        let schedule = *self.shared.schedule.lock();
        let now = time::now();
        let remaining = schedule.next.and_then(|next| match (next > now, schedule.interval) {
            (true, _) => Some(next - now),
            (false, 0) => None,
            (false, interval) => Some(interval - (now - next) % interval),
        });
        Setting { remaining, interval: schedule.interval }
    }

    /// Takes the expiries since the last time, if there were any.
    fn take(&self) -> Option<u64> {
        let mut schedule = self.shared.schedule.lock();
        let now = time::now();
        let next = schedule.next.filter(|&next| next <= now)?;
        if schedule.interval == 0 {
            schedule.next = None;
            return Some(1);
        }
        let count = (now - next) / schedule.interval + 1;
        schedule.next = Some(next.saturating_add(count.saturating_mul(schedule.interval)));
        Some(count)
    }
}

impl File for TimerFile {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if to.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let count = waiting::attempt(&self.shared.expired, patience, || self.take())?;
        let timer = self.timer.lock();
        let next = self.shared.schedule.lock().next;
        if let Some(next) = next {
            timer.at(next);
        }
        drop(timer);
        to.put(&count.to_ne_bytes())
    }

    fn readiness(&self) -> Readiness {
        let next = self.shared.schedule.lock().next;
        if next.is_some_and(|next| next <= time::now()) { Readiness::READABLE } else { Readiness::empty() }
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.shared.observers), None]
    }
}
