//! Interval timers and POSIX timers.

use super::time::{Clock, Timespec, Timeval};
use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::signal::Signal;
use crate::process::{Alarm, AlarmClock, Interval, Notice, PosixTimer, Setting, current, find_thread};
use crate::time::{self, SECOND};
use alloc::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const TIMER_ABSOLUTE: u64 = 1;
/// Ways of notice of `struct sigevent`.
const NOTIFY_SIGNAL: i32 = 0;
const NOTIFY_NONE: i32 = 1;
const NOTIFY_THREAD_ID: i32 = 4;

/// `struct itimerval`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct IntervalValue {
    interval: Timeval,
    remaining: Timeval,
}

impl IntervalValue {
    fn of(setting: Setting) -> IntervalValue {
        // A timer that is set never shows zero, which would mean that it is not.
        let remaining = if setting.remaining == 0 { 0 } else { setting.remaining.max(1000) };
        IntervalValue {
            interval: Timeval::from_nanoseconds(setting.interval),
            remaining: Timeval::from_nanoseconds(remaining),
        }
    }

    fn to_setting(self) -> Result<Setting, Errno> {
        Ok(Setting { remaining: self.remaining.to_nanoseconds()?, interval: self.interval.to_nanoseconds()? })
    }
}

/// `struct itimerspec`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct TimerValue {
    interval: Timespec,
    remaining: Timespec,
}

impl TimerValue {
    fn of(setting: Setting) -> TimerValue {
        TimerValue {
            interval: Timespec::from_nanoseconds(setting.interval),
            remaining: Timespec::from_nanoseconds(setting.remaining),
        }
    }
}

/// `struct sigevent`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    thread: i32,
    padding: [u32; 11],
}

/// `getitimer(which, result)`.
pub(super) fn getitimer(arguments: &Arguments) -> Result<usize, Errno> {
    let which = Interval::new(arguments[0])?;
    let setting = current().process().timers().interval_setting(which);
    user::write(arguments[1], &IntervalValue::of(setting))?;
    Ok(0)
}

/// `setitimer(which, new, old)`.
pub(super) fn setitimer(arguments: &Arguments) -> Result<usize, Errno> {
    let which = Interval::new(arguments[0])?;
    // A null pointer disarms, for the sake of old programs.
    let new = match arguments[1] {
        0 => Setting::default(),
        pointer => user::read::<IntervalValue>(pointer)?.to_setting()?,
    };
    let process = current().process().clone();
    let old = process.timers().set_interval(&process, which, new);
    if arguments[2] != 0 {
        user::write(arguments[2], &IntervalValue::of(old))?;
    }
    Ok(0)
}

/// `alarm(seconds)`.
pub(super) fn alarm(arguments: &Arguments) -> Result<usize, Errno> {
    let process = current().process().clone();
    let new = Setting { remaining: u64::from(arguments[0] as u32) * SECOND, interval: 0 };
    let old = process.timers().set_interval(&process, Interval::Real, new);
    // Rounded to the nearest second, but never to "none".
    let seconds = (old.remaining + SECOND / 2) / SECOND;
    Ok(if old.remaining == 0 { 0 } else { seconds.max(1) as usize })
}

/// `timer_create(clock, event, id)`.
pub(super) fn timer_create(arguments: &Arguments) -> Result<usize, Errno> {
    let [clock, event, result, ..] = *arguments;
    let clock = Clock::new(clock)?;
    let event = match event {
        0 => None,
        pointer => Some(user::read::<Event>(pointer)?),
    };
    let process = current().process().clone();
    let (is_realtime, alarm_clock) = match clock {
        Clock::Realtime => (true, AlarmClock::Boot),
        Clock::Monotonic => (false, AlarmClock::Boot),
        Clock::Process(other) if Arc::ptr_eq(&other, &process) => (false, AlarmClock::ProcessTime),
        Clock::Thread(thread) => (false, AlarmClock::ThreadTime(Arc::downgrade(&thread))),
        Clock::Process(_) => return Err(Errno::EINVAL),
    };
    let template = event.map(notice).transpose()?;
    let id = process.timers().add(|id| {
        let notice = match template.clone() {
            None => Notice::Timer { id, signal: Signal::SIGALRM, value: id as u64, thread: None },
            Some(Notice::Timer { signal, value, thread, .. }) => Notice::Timer { id, signal, value, thread },
            Some(other) => other,
        };
        PosixTimer { alarm: Alarm::new(&process, alarm_clock.clone(), notice), is_realtime }
    })?;
    if let Err(error) = user::write(result, &id) {
        let _ = process.timers().remove(id);
        return Err(error);
    }
    Ok(0)
}

fn notice(event: Event) -> Result<Notice, Errno> {
    if event.notify == NOTIFY_NONE {
        return Ok(Notice::None);
    }
    let signal = Signal::new(event.signal as u64).ok_or(Errno::EINVAL)?;
    let thread = match event.notify {
        NOTIFY_SIGNAL => None,
        NOTIFY_THREAD_ID => {
            let thread = find_thread(event.thread as u32).ok_or(Errno::EINVAL)?;
            if !Arc::ptr_eq(thread.process(), current().process()) {
                return Err(Errno::EINVAL);
            }
            Some(Arc::downgrade(&thread))
        }
        // SIGEV_THREAD is made by libc out of the others.
        _ => return Err(Errno::EINVAL),
    };
    Ok(Notice::Timer { id: 0, signal, value: event.value, thread })
}

fn timer(id: u64) -> Result<Arc<PosixTimer>, Errno> {
    current().process().timers().get(id as i32)
}

/// `timer_settime(id, flags, new, old)`.
pub(super) fn timer_settime(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, flags, new, old, ..] = *arguments;
    let timer = timer(id)?;
    let new = user::read::<TimerValue>(new)?;
    let remaining = new.remaining.to_nanoseconds()?;
    let interval = new.interval.to_nanoseconds()?;
    let deadline = if remaining == 0 {
        None
    } else if flags & TIMER_ABSOLUTE == 0 {
        Some(timer.alarm.now().saturating_add(remaining))
    } else {
        Some(remaining.saturating_sub(if timer.is_realtime { time::realtime_offset() } else { 0 }))
    };
    let before = timer.alarm.set(deadline, interval);
    current().process().timers().note_overrun(id as i32, 0);
    if old != 0 {
        user::write(old, &TimerValue::of(before))?;
    }
    Ok(0)
}

/// `timer_gettime(id, result)`.
pub(super) fn timer_gettime(arguments: &Arguments) -> Result<usize, Errno> {
    let setting = timer(arguments[0])?.alarm.get();
    user::write(arguments[1], &TimerValue::of(setting))?;
    Ok(0)
}

/// `timer_getoverrun(id)`.
pub(super) fn timer_getoverrun(arguments: &Arguments) -> Result<usize, Errno> {
    timer(arguments[0])?;
    Ok(current().process().timers().overrun(arguments[0] as i32) as usize)
}

/// `timer_delete(id)`.
pub(super) fn timer_delete(arguments: &Arguments) -> Result<usize, Errno> {
    current().process().timers().remove(arguments[0] as i32)?;
    Ok(0)
}
