//! Time: nanoseconds since boot from the time-stamp counter, and timers.
//!
//! `calibrate` measures the counter once, on the boot CPU; all CPUs' counters run together on the machines we run on.

mod calibrate;
mod timer;
mod wall_clock;

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::registers::time_stamp;

pub(crate) use calibrate::{apic_ticks, calibrate};
pub(crate) use timer::{Expire, Timer, expire_due, first_deadline};
pub(crate) use wall_clock::{read_clock, realtime_offset, set_realtime_offset};

/// Nanoseconds of one second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// The counter at the first instructions of the kernel; zero of `now`.
static START: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds for one tick of the counter, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(1 << 32);

/// Nanoseconds since boot.
pub(crate) fn now() -> u64 {
    from_time_stamp(time_stamp())
}

/// The time at which the time-stamp counter had this value.
pub(crate) fn from_time_stamp(stamp: u64) -> u64 {
    let ticks = stamp.saturating_sub(START.load(Ordering::Relaxed));
    ((u128::from(ticks) * u128::from(SCALE.load(Ordering::Relaxed))) >> 32) as u64
}

/// The time-stamp counter's frequency, in hertz.
pub(crate) fn time_stamp_hertz() -> u64 {
    ((u128::from(SECOND) << 32) / u128::from(SCALE.load(Ordering::Relaxed))) as u64
}

/// Remembers when the kernel began.
pub(crate) fn mark_start() {
    START.store(time_stamp(), Ordering::Relaxed);
}
