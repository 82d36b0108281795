//! Clocks and sleeps.

use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::{Process, Thread, current, find_process, find_thread, restart};
use crate::sync::{WaitQueue, Wake};
use crate::time::{self, SECOND};
use alloc::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Resolution that is reported for all but the coarse clocks.
const RESOLUTION: u64 = 1;
/// Resolution that is reported for the coarse clocks: a tick of 4 ms, as on Debian.
const COARSE_RESOLUTION: u64 = 4_000_000;
const TIMER_ABSOLUTE: u64 = 1;
/// Largest number of seconds that is still exact in nanoseconds.
const SECONDS_MAX: u64 = i64::MAX as u64 / SECOND;

/// `struct timespec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Timespec {
    /// Whole seconds.
    pub(crate) seconds: i64,
    /// The rest, 0..1_000_000_000.
    pub(crate) nanoseconds: i64,
}

impl Timespec {
    /// From nanoseconds.
    pub(crate) fn from_nanoseconds(value: u64) -> Timespec {
        Timespec { seconds: (value / SECOND) as i64, nanoseconds: (value % SECOND) as i64 }
    }

    /// In nanoseconds; what is too long for them becomes the longest there is, about 292 years.
    ///
    /// # Errors
    /// EINVAL for a negative time or a fraction that is none.
    pub(crate) fn to_nanoseconds(self) -> Result<u64, Errno> {
        if self.seconds < 0 || !(0..SECOND as i64).contains(&self.nanoseconds) {
            return Err(Errno::EINVAL);
        }
        let seconds = self.seconds as u64;
        if seconds >= SECONDS_MAX {
            return Ok(i64::MAX as u64);
        }
        Ok(seconds * SECOND + self.nanoseconds as u64)
    }
}

/// `struct timeval`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Timeval {
    /// Whole seconds.
    pub(crate) seconds: i64,
    /// The rest, 0..1_000_000.
    pub(crate) microseconds: i64,
}

impl Timeval {
    /// From nanoseconds, rounded down.
    pub(crate) fn from_nanoseconds(value: u64) -> Timeval {
        Timeval { seconds: (value / SECOND) as i64, microseconds: (value % SECOND / 1000) as i64 }
    }

    /// In nanoseconds, as [`Timespec::to_nanoseconds`].
    ///
    /// # Errors
    /// EINVAL as there.
    pub(crate) fn to_nanoseconds(self) -> Result<u64, Errno> {
        if !(0..1_000_000).contains(&self.microseconds) {
            return Err(Errno::EINVAL);
        }
        Timespec { seconds: self.seconds, nanoseconds: self.microseconds * 1000 }.to_nanoseconds()
    }
}

/// Reads a timeout in nanoseconds; `None` for a null pointer.
///
/// # Errors
/// EFAULT, EINVAL.
pub(crate) fn read_timeout(pointer: u64) -> Result<Option<u64>, Errno> {
    if pointer == 0 {
        return Ok(None);
    }
    user::read::<Timespec>(pointer)?.to_nanoseconds().map(Some)
}

/// A clock of `clock_gettime`.
#[derive(Clone)]
pub(crate) enum Clock {
    /// Since 1970.
    Realtime,
    /// Since boot.
    Monotonic,
    /// CPU time of a process.
    Process(Arc<Process>),
    /// CPU time of a thread.
    Thread(Arc<Thread>),
}

impl Clock {
    /// By Linux's number; negative numbers name the CPU clocks of other processes and threads.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn new(number: u64) -> Result<Clock, Errno> {
        let number = number as u32 as i32;
        match number {
            0 | 5 | 8 | 11 => Ok(Clock::Realtime),
            1 | 4 | 6 | 7 | 9 => Ok(Clock::Monotonic),
            2 => Ok(Clock::Process(current().process().clone())),
            3 => Ok(Clock::Thread(current())),
            _ if number < 0 => Clock::of_another(number),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Bits 0..3 say which of the CPU clocks and whether of a thread, the others are the complement of the
    /// id.
    fn of_another(number: i32) -> Result<Clock, Errno> {
        const IS_THREAD: i32 = 4;
        if number & 3 == 3 {
            return Err(Errno::EINVAL);
        }
        let id = !(number >> 3) as u32;
        if number & IS_THREAD != 0 {
            let thread = if id == 0 { Some(current()) } else { find_thread(id) };
            return thread.map(Clock::Thread).ok_or(Errno::EINVAL);
        }
        let process = if id == 0 { Some(current().process().clone()) } else { find_process(id) };
        process.map(Clock::Process).ok_or(Errno::EINVAL)
    }

    /// Its present time in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        match self {
            Clock::Realtime => time::now().saturating_add(time::realtime_offset()),
            Clock::Monotonic => time::now(),
            Clock::Process(process) => process.cpu_time(),
            Clock::Thread(thread) => thread.cpu_time(),
        }
    }
}

/// `clock_gettime(clock, result)`.
pub(super) fn clock_gettime(arguments: &Arguments) -> Result<usize, Errno> {
    let clock = Clock::new(arguments[0])?;
    user::write(arguments[1], &Timespec::from_nanoseconds(clock.now()))?;
    Ok(0)
}

/// `clock_getres(clock, result)`.
pub(super) fn clock_getres(arguments: &Arguments) -> Result<usize, Errno> {
    Clock::new(arguments[0])?;
    let coarse = matches!(arguments[0] as u32, 5 | 6);
    if arguments[1] != 0 {
        let resolution = if coarse { COARSE_RESOLUTION } else { RESOLUTION };
        user::write(arguments[1], &Timespec::from_nanoseconds(resolution))?;
    }
    Ok(0)
}

/// `clock_settime(clock, time)`.
pub(super) fn clock_settime(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[0] as u32 != 0 {
        Clock::new(arguments[0])?;
        return Err(Errno::EINVAL);
    }
    let wanted = user::read::<Timespec>(arguments[1])?.to_nanoseconds()?;
    set_realtime(wanted)
}

fn set_realtime(wanted: u64) -> Result<usize, Errno> {
    if !current().process().credentials().has(crate::process::credentials::CAP_SYS_TIME) {
        return Err(Errno::EPERM);
    }
    // Time since boot cannot be negative, so neither can the offset.
    let offset = wanted.checked_sub(time::now()).ok_or(Errno::EINVAL)?;
    time::set_realtime_offset(offset);
    Ok(0)
}

/// `gettimeofday(time, zone)`.
pub(super) fn gettimeofday(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[0] != 0 {
        user::write(arguments[0], &Timeval::from_nanoseconds(Clock::Realtime.now()))?;
    }
    if arguments[1] != 0 {
        user::write(arguments[1], &[0u32; 2])?;
    }
    Ok(0)
}

/// `settimeofday(time, zone)`.
pub(super) fn settimeofday(arguments: &Arguments) -> Result<usize, Errno> {
    match arguments[0] {
        0 => Ok(0),
        pointer => set_realtime(user::read::<Timeval>(pointer)?.to_nanoseconds()?),
    }
}

/// `time(result)`.
pub(super) fn time(arguments: &Arguments) -> Result<usize, Errno> {
    let seconds = Clock::Realtime.now() / SECOND;
    if arguments[0] != 0 {
        user::write(arguments[0], &seconds)?;
    }
    Ok(seconds as usize)
}

/// `nanosleep(wanted, remaining)`.
pub(super) fn nanosleep(arguments: &Arguments) -> Result<usize, Errno> {
    let wanted = user::read::<Timespec>(arguments[0])?.to_nanoseconds()?;
    sleep_until(time::now().saturating_add(wanted), Some(arguments[1]))
}

/// `clock_nanosleep(clock, flags, wanted, remaining)`.
pub(super) fn clock_nanosleep(arguments: &Arguments) -> Result<usize, Errno> {
    let [number, flags, wanted, remaining, ..] = *arguments;
    if number as u32 == 3 {
        // A thread cannot sleep on its own CPU time.
        return Err(Errno::EINVAL);
    }
    let clock = Clock::new(number)?;
    let wanted = user::read::<Timespec>(wanted)?.to_nanoseconds()?;
    let is_absolute = flags & TIMER_ABSOLUTE != 0;
    match clock {
        Clock::Realtime | Clock::Monotonic if !is_absolute => {
            sleep_until(time::now().saturating_add(wanted), Some(remaining))
        }
        Clock::Monotonic => sleep_until(wanted, None),
        Clock::Realtime => sleep_until(wanted.saturating_sub(time::realtime_offset()), None),
        Clock::Process(_) | Clock::Thread(_) => {
            let start = if is_absolute { 0 } else { clock.now() };
            sleep_on_cpu_time(&clock, start.saturating_add(wanted))
        }
    }
}

/// Sleeps until `deadline` (since boot). An interrupted relative sleep (one with a place for the rest) stores
/// the rest and goes on through `restart_syscall`; an absolute one simply starts again.
fn sleep_until(deadline: u64, remaining: Option<u64>) -> Result<usize, Errno> {
    let nothing = WaitQueue::new();
    match nothing.wait_interruptible::<()>(Some(deadline), || None) {
        Ok(()) | Err(Wake::TimedOut) => Ok(0),
        Err(Wake::Interrupted) => {
            let Some(pointer) = remaining else { return Err(Errno::ERESTARTNOHAND) };
            let rest = deadline.saturating_sub(time::now());
            if rest == 0 {
                return Ok(0);
            }
            if pointer != 0 {
                user::write(pointer, &Timespec::from_nanoseconds(rest))?;
            }
            Err(restart::interrupted(move || sleep_until(deadline, Some(pointer))))
        }
    }
}

/// Sleeps until a CPU clock shows `deadline`: looks at it whenever it could have got there.
fn sleep_on_cpu_time(clock: &Clock, deadline: u64) -> Result<usize, Errno> {
    const SHORTEST: u64 = 1_000_000;
    let nothing = WaitQueue::new();
    loop {
        let now = clock.now();
        if now >= deadline {
            return Ok(0);
        }
        let next = time::now().saturating_add((deadline - now).clamp(SHORTEST, SECOND));
        if nothing.wait_interruptible::<()>(Some(next), || None) == Err(Wake::Interrupted) {
            return Err(Errno::ERESTARTNOHAND);
        }
    }
}
