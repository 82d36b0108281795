//! The alarms of a process: the three of `setitimer`, and those that `timer_create` made.

use super::Process;
use super::alarm::{Alarm, AlarmClock, Notice, Setting};
use super::limits::{INFINITY, Limit};
use super::signal::{Information, Origin, Signal};
use crate::sync::SpinLock;
use crate::syscall::Errno;
use crate::time::SECOND;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// Most POSIX timers of one process.
const TIMERS_MAX: usize = 4096;

/// Which of the three interval timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interval {
    /// ITIMER_REAL, SIGALRM.
    Real,
    /// ITIMER_VIRTUAL, SIGVTALRM. CPU time is not split into user and system time here, so it counts both.
    Virtual,
    /// ITIMER_PROF, SIGPROF.
    Profile,
}

impl Interval {
    /// By Linux's number.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn new(number: u64) -> Result<Interval, Errno> {
        match number as u32 {
            0 => Ok(Interval::Real),
            1 => Ok(Interval::Virtual),
            2 => Ok(Interval::Profile),
            _ => Err(Errno::EINVAL),
        }
    }

    fn alarm(self, process: &Arc<Process>) -> Alarm {
        let (clock, signal) = match self {
            Interval::Real => (AlarmClock::Boot, Signal::SIGALRM),
            Interval::Virtual => (AlarmClock::ProcessTime, Signal::SIGVTALRM),
            Interval::Profile => (AlarmClock::ProcessTime, Signal::SIGPROF),
        };
        Alarm::new(process, clock, Notice::Signal(signal))
    }
}

/// A POSIX timer.
pub(crate) struct PosixTimer {
    /// The alarm that it is.
    pub(crate) alarm: Alarm,
    /// Absolute times are counted from 1970, not from boot.
    pub(crate) is_realtime: bool,
}

/// What watches RLIMIT_CPU. Another process may set that limit at any time.
struct LimitWatch {
    alarm: Option<Arc<Alarm>>,
    /// The process has come to its end, where all alarms go: one that came later would have its handler drop the process, and with it the alarm
    /// that is being handled.
    has_ended: bool,
}

/// All alarms of a process, made when first used.
pub(crate) struct Timers {
    intervals: SpinLock<[Option<Arc<Alarm>>; 3]>,
    limit: SpinLock<LimitWatch>,
    posix: SpinLock<BTreeMap<i32, Arc<PosixTimer>>>,
    /// Overrun of the last delivered signal of each timer that had one.
    overruns: SpinLock<BTreeMap<i32, i32>>,
}

impl Timers {
    /// None set.
    pub(super) const fn new() -> Timers {
        Timers {
            intervals: SpinLock::new([None, None, None]),
            limit: SpinLock::new(LimitWatch { alarm: None, has_ended: false }),
            posix: SpinLock::new(BTreeMap::new()),
            overruns: SpinLock::new(BTreeMap::new()),
        }
    }

    /// The alarm behind an interval timer, if it was ever set.
    pub(crate) fn interval(&self, which: Interval) -> Option<Arc<Alarm>> {
        self.intervals.lock()[which as usize].clone()
    }

    /// How an interval timer is set.
    pub(crate) fn interval_setting(&self, which: Interval) -> Setting {
        self.interval(which).map_or(Setting::default(), |alarm| alarm.get())
    }

    /// Sets an interval timer; returns how it was set before.
    pub(crate) fn set_interval(&self, process: &Arc<Process>, which: Interval, new: Setting) -> Setting {
        let alarm = self.interval(which).unwrap_or_else(|| {
            let fresh = Arc::new(which.alarm(process));
            self.intervals.lock()[which as usize].get_or_insert(fresh).clone()
        });
        let deadline = (new.remaining != 0).then(|| alarm.now().saturating_add(new.remaining));
        alarm.set(deadline, new.interval)
    }

    /// Has the process hear each second that it has used more CPU time than its soft limit, and end at its hard one.
    pub(crate) fn watch_limit(&self, process: &Arc<Process>, limit: Limit) {
        let nanoseconds = |seconds: u64| seconds.saturating_mul(SECOND);
        let alarm = (limit.soft != INFINITY).then(|| {
            let notice = Notice::ProcessorLimit { hard: nanoseconds(limit.hard) };
            let alarm = Arc::new(Alarm::new(process, AlarmClock::ProcessTime, notice));
            alarm.set(Some(nanoseconds(limit.soft)), SECOND);
            alarm
        });
        let former = {
            let mut watch = self.limit.lock();
            if watch.has_ended { alarm } else { core::mem::replace(&mut watch.alarm, alarm) }
        };
        if let Some(former) = former {
            former.set(None, 0);
        }
    }

    /// Adds a POSIX timer that `make` builds from its id.
    ///
    /// # Errors
    /// EAGAIN if there are too many.
    pub(crate) fn add(&self, make: impl FnOnce(i32) -> PosixTimer) -> Result<i32, Errno> {
        let mut posix = self.posix.lock();
        if posix.len() >= TIMERS_MAX {
            return Err(Errno::EAGAIN);
        }
        let id = (0..).find(|id| !posix.contains_key(id)).ok_or(Errno::EAGAIN)?;
        posix.insert(id, Arc::new(make(id)));
        Ok(id)
    }

    /// The POSIX timer with this id.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn get(&self, id: i32) -> Result<Arc<PosixTimer>, Errno> {
        self.posix.lock().get(&id).cloned().ok_or(Errno::EINVAL)
    }

    /// Deletes a POSIX timer.
    ///
    /// # Errors
    /// EINVAL if there is none with this id.
    pub(crate) fn remove(&self, id: i32) -> Result<(), Errno> {
        let removed = self.posix.lock().remove(&id);
        self.overruns.lock().remove(&id);
        removed.map(drop).ok_or(Errno::EINVAL)
    }

    /// Notes the overrun of a timer's last signal, or 0 when the timer is set anew.
    pub(crate) fn note_overrun(&self, id: i32, overrun: i32) {
        self.overruns.lock().insert(id, overrun);
    }

    /// A signal was taken by the program. If it is an alarm's, its overrun count is brought up to date.
    pub(super) fn taken(&self, information: &mut Information) {
        if let Origin::Timer { timer: id, overrun, .. } = &mut information.origin {
            if let Ok(timer) = self.get(*id) {
                *overrun = overrun.saturating_add(i32::try_from(timer.alarm.taken()).unwrap_or(i32::MAX));
            }
            self.note_overrun(*id, *overrun);
        }
        let interval = match information.signal {
            Signal::SIGALRM => Interval::Real,
            Signal::SIGVTALRM => Interval::Virtual,
            Signal::SIGPROF => Interval::Profile,
            _ => return,
        };
        if let Some(alarm) = self.interval(interval) {
            alarm.taken();
        }
    }

    /// Overrun of the timer's last delivered signal.
    pub(crate) fn overrun(&self, id: i32) -> i32 {
        self.overruns.lock().get(&id).copied().unwrap_or(0)
    }

    /// Deletes the POSIX timers (`execve`).
    pub(super) fn clear_posix(&self) {
        let removed = core::mem::take(&mut *self.posix.lock());
        drop(removed);
        self.overruns.lock().clear();
    }

    /// Takes everything down (the end).
    pub(super) fn clear(&self) {
        self.clear_posix();
        let removed = core::mem::take(&mut *self.intervals.lock());
        let limit = core::mem::replace(&mut *self.limit.lock(), LimitWatch { alarm: None, has_ended: true });
        drop((removed, limit));
    }
}
